"""What `pip install emhrnn` must do where torch, scikit-learn, SciPy and Arrow are missing: everything but training."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import load, train
from emhrnn.training.run import load_run
from tests.behaviour.commands import BAD, GOOD, rows

ROOT = Path(__file__).parents[2]
BLOCKER = """
import os, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["BLOCKED"].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""
LIBRARIES = "torch,scipy,sklearn,pyarrow,jaxtyping"


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose sitecustomize.py makes imports of BLOCKED fail."""
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    return folder


def run(blocked: Path, *command: str | Path, libraries: str = LIBRARIES, code: int = 0) -> str:
    paths = os.pathsep.join([str(blocked), str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, *map(str, command)], env={**os.environ, "PYTHONPATH": paths, "BLOCKED": libraries},
        cwd=blocked, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


API = """
import json, sys
import emhrnn
from emhrnn.explain.html import html_page

model, texts = emhrnn.load(sys.argv[1]), json.loads(sys.argv[2])
explanations = model.explain(texts)
page = html_page(explanations[0], counterfactual=model.counterfactual(texts[0]))
assert "<html" in page
assert not {"torch", "scipy", "sklearn", "pyarrow"} & sys.modules.keys()
print(json.dumps({
    "labels": model.predict(texts),
    "probabilities": model.predict_proba(texts).tolist(),
    "evidence": explanations[0].evidence.phrases.tolist(),
}))
"""


@pytest.mark.parametrize("native", ["1", "0"], ids=["native", "plain"])
def test_the_api(blocked: Path, native: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same numbers as the torch module has."""
    texts = ["The soup was not bad at all. The waiter was rude.", "Zzz.", "A wonderful room, and a great view!"]
    monkeypatch.setenv("EMHRNN_NATIVE", native)
    found = json.loads(run(blocked, "-c", API, "demo", json.dumps(texts)))
    model = load("demo")
    assert found["labels"] == model.predict(texts)
    trainable = load_run(Path(model_folder()), trainable=True)
    shares = trainable.predict(trainable.encoder.encode(texts)).probabilities
    np.testing.assert_allclose(found["probabilities"], shares, atol=1e-6)
    evidence = model.explain(texts[0]).evidence
    assert evidence is not None
    np.testing.assert_allclose(found["evidence"], evidence.phrases, atol=1e-5)


def model_folder() -> Path:
    return ROOT / "src" / "emhrnn" / "demo" / "model"


def test_the_commands(blocked: Path) -> None:
    def emhrnn(*arguments: str | Path, code: int = 0) -> str:
        return run(blocked, "-m", "emhrnn", *arguments, code=code)

    (blocked / "texts.csv").write_text("text\nThe soup was good.\nBad room.\n")
    assert json.loads(emhrnn("explain", "demo", "The soup was good.", "--json"))["probabilities"]
    assert "supports the label" in emhrnn("explain", "demo", "The soup was good.", "--counterfactual")
    emhrnn("explain", "demo", "The soup was good.", "--html", "why.html")
    assert "<html" in (blocked / "why.html").read_text()
    for out in ("rows.csv", "rows.jsonl"):
        emhrnn("predict", "demo", "texts.csv", "--out", out, "--explain", "--quiet")
        assert len((blocked / out).read_text().splitlines()) == 2 + (out == "rows.csv")
    assert "accuracy" in emhrnn("info", "demo")
    assert "em-hrnn" in emhrnn("models")
    assert "pip install 'emhrnn[train]'" in emhrnn("predict", "demo", "texts.csv", "--out", "rows.parquet", code=2)
    assert "pip install 'emhrnn[train]'" in emhrnn("train", "texts.csv", "--out", "run", code=2)


SERVE = """
import sys
from pathlib import Path
from fastapi.testclient import TestClient
from emhrnn.serve.app import application
from emhrnn.training.pack import located

with TestClient(application([located("demo")]), base_url="http://127.0.0.1") as client:
    assert client.get("/").status_code == 200
    asked = {"texts": ["The soup was good.", "Bad room."]}
    predicted, explained = (client.post(f"/v1/{what}", json=asked) for what in ("predict", "explain"))
    assert len(predicted.json()["predictions"]) == len(explained.json()["explanations"]) == 2
assert not {"torch", "scipy", "sklearn", "pyarrow"} & sys.modules.keys()
"""


def test_the_server(blocked: Path) -> None:
    pytest.importorskip("httpx")
    run(blocked, "-W", "ignore", "-c", SERVE)


def test_the_estimator_predicts(blocked: Path) -> None:
    """It is scikit-learn's, so only torch is missing."""
    import pickle

    from tests.behaviour.test_evidence import classifier

    texts, labels = (list(column) for column in zip(*rows(40), strict=True))
    fitted = classifier().fit(texts, labels)
    (blocked / "fitted.pickle").write_bytes(pickle.dumps(fitted))
    script = (
        "import json, pickle, sys; fitted = pickle.load(open('fitted.pickle', 'rb')); texts = json.loads(sys.argv[1]);"
        "assert fitted.explain(texts[0]).phrases; assert 'torch' not in sys.modules;"
        "print(json.dumps([fitted.predict(texts).tolist(), fitted.predict_proba(texts).tolist()]))"
    )
    told, shares = json.loads(run(blocked, "-c", script, json.dumps([GOOD, BAD]), libraries="torch"))
    assert told == ["good", "bad"]
    np.testing.assert_allclose(shares, fitted.predict_proba([GOOD, BAD]), atol=1e-6)


@pytest.mark.parametrize("name", ["tfidf-lr", "tfidf-svm", "nb-lr"])
def test_fitted_models_predict(blocked: Path, name: str) -> None:
    """In Python, for files and over HTTP, with the numbers that they had when they were fitted."""
    from tests.behaviour.commands import write_reviews

    folder = blocked / name
    trained = train(write_reviews(blocked / "train.csv", 60), folder, settings={"model.name": name}, progress=False)
    script = (
        "import emhrnn, json, sys; model, texts = emhrnn.load(sys.argv[1]), json.loads(sys.argv[2]);"
        "assert not {'torch', 'scipy', 'sklearn', 'pyarrow'} & sys.modules.keys();"
        "print(json.dumps([model.predict(texts), model.predict_proba(texts).tolist()]))"
    )
    texts = [GOOD, BAD, "Zzz."]
    told, shares = json.loads(run(blocked, "-c", script, folder, json.dumps(texts)))
    assert told[:2] == ["good", "bad"]
    np.testing.assert_allclose(shares, trained.model.predict_proba(texts), atol=1e-6)
    (blocked / "texts.csv").write_text("text\nThe soup was good.\nBad room.\n")
    run(blocked, "-m", "emhrnn", "predict", folder, "texts.csv", "--out", f"{name}.csv", "--quiet")
    assert len((blocked / f"{name}.csv").read_text().splitlines()) == 3
    assert name in run(blocked, "-m", "emhrnn", "info", folder)
    assert "use evidence or em-hrnn" in run(blocked, "-m", "emhrnn", "explain", folder, "good soup", code=2)


def test_other_models_say_what_to_install(blocked: Path) -> None:
    import torch

    from emhrnn.corpus import Corpus
    from emhrnn.training.config import make_config
    from emhrnn.training.run import describe, new_run, save_weights

    corpus = Corpus.from_texts(["good soup", "bad soup"] * 3, ["a", "b"] * 3)
    table = torch.zeros(len(corpus.vocabulary), 3)
    config = make_config(assignments=["model.name=hn-att"])
    made = new_run(config, corpus.vocabulary, corpus.classes, table, multi_label=False, text=corpus.text)
    folder = blocked / "hn-att"
    folder.mkdir()
    describe(folder, made)
    save_weights(folder, made, 0)
    told = run(blocked, "-m", "emhrnn", "explain", folder, "good soup", code=2)
    assert "torch" in told
    assert "pip install 'emhrnn[train]'" in told
