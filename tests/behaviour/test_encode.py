"""One way from text to prediction: Python, the command line, REST and scoring read a text alike, caps included, and
have one rule for a text without words (docs/data.md)."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import emhrnn
from emhrnn.errors import DataError
from emhrnn.scoring import score
from emhrnn.scoring.chunks import Data
from tests.behaviour.commands import Cli

RUNS = Path(__file__).with_name("runs")
BLANK = ["", " \n\t", "<br /><br>", "\0", "\u2003\u00a0"]
CAPS = {"none": {}, "caps": {"max_words_per_sentence": 4, "max_sentences": 3}}


def ragged_texts(seed: int = 0) -> list[str]:
    """Of one word to a hundred sentences, with odd characters and words that no run knows."""
    rng = np.random.default_rng(seed)
    words = ["the", "soup", "was", "not", "bad", "great", ",", "don't", "café", "日本", "<br />", "10/10", "zqx", "\0"]
    texts = []
    for sentences in (1, 1, 2, 3, 7, 100):
        parts = [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(sentences)]
        texts.append(". ".join(parts) + " fine.")
    return texts


@pytest.fixture(params=[(name, caps) for name in ("em-hrnn", "hn-att", "evidence") for caps in CAPS], ids="-".join)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run of each kind, with and without caps on what it reads."""
    name, caps = request.param
    folder = shutil.copytree(RUNS / name, tmp_path / "run", ignore=shutil.ignore_patterns("checkpoint", "corpus"))
    description = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    description["text"]["limits"].update(CAPS[caps])
    (folder / "config.json").write_text(json.dumps(description), encoding="utf-8")
    return folder


def scored(run: Path, texts: list[str], *, explain: bool = False) -> list[dict[str, object]]:
    data, out = run.parent / "texts.jsonl", run.parent / f"labels-{explain}.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    score(run, Data(paths=(data,)), out, explain=explain, progress=False)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_every_way_gives_the_same_probabilities(run: Path, cli: Cli) -> None:
    model, texts = emhrnn.load(run), ragged_texts()
    expected = model.predict_proba(texts)
    found = {
        "explain": np.array([explanation.probabilities for explanation in model.explain(texts)]),
        "scoring": np.array([[row[f"p_{name}"] for name in model.classes] for row in scored(run, texts)]),
        "scoring with explanations": np.array(
            [[row[f"p_{name}"] for name in model.classes] for row in scored(run, texts, explain=True)]
        ),
    }
    told = cli.ok("explain", run, "-", "--json", stdin=texts[4].encode()).json["probabilities"]
    assert isinstance(told, dict)
    np.testing.assert_allclose([told[name] for name in model.classes], expected[4], atol=1e-5)
    for way, probabilities in found.items():
        np.testing.assert_allclose(probabilities, expected, atol=1e-5, err_msg=way)


def test_rest_gives_the_same_probabilities(run: Path) -> None:
    pytest.importorskip("fastapi", reason="needs the extra serve")
    from fastapi.testclient import TestClient

    from emhrnn.serve.app import application

    model, texts = emhrnn.load(run), ragged_texts()
    expected = model.predict_proba(texts)
    with TestClient(application([run]), base_url="http://127.0.0.1") as client:
        predictions = client.post("/v1/predict", json={"texts": texts}).json()["predictions"]
        explanations = client.post("/v1/explain", json={"texts": texts}).json()["explanations"]
        for answers in (predictions, explanations):
            found = [[answer["probabilities"][name] for name in model.classes] for answer in answers]
            np.testing.assert_allclose(found, expected, atol=1e-5)
        for path in ("/v1/predict", "/v1/explain"):
            for text in BLANK:
                answer = client.post(path, json={"texts": ["fine", text]})
                assert answer.status_code == 422
                assert "text 2 has no words" in answer.json()["error"]


def test_caps_cut_what_is_predicted_and_what_is_explained(run: Path) -> None:
    model = emhrnn.load(run)
    capped = model.run.text.limits.max_sentences is not None
    text, rest = "It was bad. It was bad. It was bad.", " Great great great."
    whole = model.explain(text + rest)
    assert whole.text == text + rest  # the text is shown whole
    assert len(whole.sentences) == (3 if capped else 4)
    same = np.allclose(model.predict_proba([text]), model.predict_proba([text + rest]), atol=1e-7)
    assert same == capped


@pytest.mark.parametrize("text", BLANK, ids=ascii)
def test_a_text_without_words_is_refused(text: str, cli: Cli) -> None:
    model = emhrnn.load(RUNS / "em-hrnn")
    for ask in (model.predict, model.predict_proba, model.explain):
        with pytest.raises(DataError, match="text 2 has no words; give a text"):
            ask(["fine", text])
    with pytest.raises(DataError, match="text 1 has no words"):
        model.explain(text)
    with pytest.raises(DataError, match="text 1 has no words"):
        model.counterfactual(text)
    with pytest.raises(DataError, match="text 3 has no words"):
        emhrnn.EMHRNNClassifier(epochs=1).fit(["good", "bad", text], ["a", "b", "a"])
    assert "text 1 has no words" in cli.error("explain", RUNS / "em-hrnn", "-", stdin=text.encode())


def test_a_row_without_words_does_not_end_scoring(tmp_path: Path) -> None:
    run = shutil.copytree(RUNS / "em-hrnn", tmp_path / "run")
    rows = scored(run, ["fine", *BLANK, "bad"])
    assert [bool(row["label"]) for row in rows] == [True, *[False] * len(BLANK), True]
    errors = (tmp_path / "labels-False.jsonl.errors.jsonl").read_text(encoding="utf-8").splitlines()
    unscored = [json.loads(line) for line in errors if not json.loads(line)["scored"]]
    assert [line["row"] for line in unscored] == list(range(1, 1 + len(BLANK)))
    assert {line["reason"] for line in unscored} == {"no words"}
