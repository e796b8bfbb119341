"""`emhrnn export`: a folder that runs without this package."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from emhrnn.api import load
from emhrnn.corpus import TextSettings
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.paper.export.onnx_folder import MODEL, arrays, export_onnx, tokenizer
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.text import UNK, Vocabulary, split_sentences, tokenise
from tests.behaviour.commands import BAD, GOOD, Cli
from tests.models.examples import make_batch

AS_A_STRANGER = """
import runpy, sys
sys.modules["emhrnn"] = sys.modules["torch"] = None  # an import of either fails
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_the_example_needs_nothing_of_ours(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "exported"
    exported = export_onnx(load(run).run, out)
    assert exported.difference < 1e-5
    assert sorted(path.name for path in out.iterdir()) == ["classes.json", "example.py", MODEL, "tokenizer.json"]
    example = (out / "example.py").read_text(encoding="utf-8")
    assert len([line for line in example.splitlines() if line.strip()]) <= 40
    done = as_a_stranger(out, GOOD, BAD)
    assert done.returncode == 0, done.stderr
    labels = [line.split()[0] for line in done.stdout.splitlines()]
    assert set(labels) <= set(load(run).classes)
    assert len(labels) == 2
    nothing = as_a_stranger(out)
    assert (nothing.returncode, nothing.stderr.strip()) == (1, "usage: python example.py TEXT...")


def as_a_stranger(out: Path, *texts: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", AS_A_STRANGER, str(out / "example.py"), *texts],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": ""}, check=False,
    )  # fmt: skip


def test_the_example_shows_all_labels_of_a_text(run: Path, tmp_path: Path) -> None:
    """A run that gives several labels, of which more than one, one or none may be likely."""
    several = load(run).run
    several.multi_label = True
    assert isinstance(several.model, EMHRNN)
    with torch.no_grad():
        for name, parameter in several.model.named_parameters():
            if name.startswith("output"):
                parameter.zero_()
    cases = {(1.0, 1.0): "bad  73%, good  73%", (-1.0, 1.0): "good  73%", (-1.0, -1.0): "no label over 50%"}
    for biases, expected in cases.items():
        with torch.no_grad():
            several.model.output.bias.copy_(torch.tensor(biases) * several.temperature)
        export_onnx(several, tmp_path / "out", overwrite=True)
        done = as_a_stranger(tmp_path / "out", GOOD)
        assert done.stdout.strip() == f"{expected}  {GOOD}", done.stderr


def test_texts_through_the_files_give_what_the_model_gives(run: Path, tmp_path: Path) -> None:
    model = load(run)
    export_onnx(model.run, tmp_path / "out")
    namespace: dict[str, object] = {"__name__": "example", "__file__": str(tmp_path / "out" / "example.py")}
    exec(compile((tmp_path / "out" / "example.py").read_text(encoding="utf-8"), "example.py", "exec"), namespace)
    texts = [GOOD, BAD, "The soup."]
    given = namespace["classify"](texts)["probabilities"]  # type: ignore[operator]
    np.testing.assert_allclose(given, model.predict_proba(texts), atol=1e-4)
    none = namespace["classify"]([])["probabilities"]  # type: ignore[operator]
    assert none.shape == (0, 2)


def test_the_command(cli: Cli, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = cli.ok("export", run, "--onnx", out, "--json").json
    assert told["bytes"] == (out / MODEL).stat().st_size
    assert told["difference"] < 1e-4
    assert "exists and is not empty" in cli.error("export", run, "--onnx", out)
    assert "Next: python" in cli.ok("export", run, "--onnx", out, "--overwrite").out
    assert json.loads((out / "classes.json").read_text(encoding="utf-8")) == ["bad", "good"]


def test_what_cannot_be_exported_is_told(cli: Cli, made: Path, tmp_path: Path) -> None:
    cli.ok("train", made / "reviews.csv", "--out", tmp_path / "tfidf", "--model", "tfidf-lr", "--quiet")
    assert "em-hrnn with --onnx" in cli.error("export", tmp_path / "tfidf", "--onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "Don't we'll it's O'Brien, well-known U.S. Mr. 3.14 1,000 10/10 9:30pm!",
        "wait.... what?!?! no!!!!!! -- so ----- ok... :-) \u201cquoted\u201d it\u2019s #tag @you",
        "see http://example.org/a?b=c, mail me@example.org <br /> caf\u00e9 \u6f22\u5b57 \U0001f600",
    ],
)
def test_the_tokenizer_splits_as_we_do(text: str) -> None:
    assert words_of(text) == tokenise(" ".join(text.replace("<br />", " ").split()))


def words_of(text: str) -> list[str]:
    """The words that the file finds; a vocabulary of all of ours, so that none is unknown."""
    ours = tokenise(text.replace("<br />", " "))
    vocabulary = Vocabulary([UNK, *dict.fromkeys(ours)])
    return [vocabulary.words[i] for i in tokenizer(vocabulary, TextSettings()).encode(text).ids]


def test_the_tokenizer_on_many_reviews() -> None:
    for review in generate_reviews(100, 5):
        for sentence in split_sentences(review.text):
            assert words_of(sentence) == tokenise(sentence)


def test_inputs_are_those_of_the_graph() -> None:
    given = arrays(make_batch([[2, 3], [1]]))
    assert {name: len(array) for name, array in given.items()} == {
        "words": 6, "sentence_lengths": 3, "document_lengths": 2,
    }  # fmt: skip
