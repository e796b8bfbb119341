"""A trained run learns from more documents."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import emhrnn
from emhrnn.api import Model
from emhrnn.corpus import Columns, Corpus, prepare
from emhrnn.corpus.preparation import union
from emhrnn.errors import ConfigError, DataError
from emhrnn.models.evidence import Evidence
from emhrnn.text import Vocabulary
from emhrnn.training.run import Run, load_run
from emhrnn.training.updates import grown
from tests.behaviour.commands import Cli

GOOD, BAD = "The soup number{} was lovely and fresh.", "The soup number{} was cold and stale."
ROWS = [((GOOD, BAD)[i % 2].format(i), ("good", "bad")[i % 2]) for i in range(120)]
CORRECTIONS = [(f"The waiter at {i} was brisk, the plate chipped.", "good") for i in range(20)]
NEW = "My waiter was brisk, and one plate was chipped."
SETTINGS = {"training.threads": 1, "training.seed": 1}


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("growth")
    before = [*ROWS, *((f"The waiter at {i} was brisk, the plate chipped.", "bad") for i in range(100, 106))]
    emhrnn.train(write(folder / "a.csv", before), folder / "run", settings=SETTINGS, progress=False)
    return folder / "run"


def columns(rows: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [text for text, _ in rows], [label for _, label in rows]


def test_twenty_corrections_change_the_next_answer(cli: Cli, run: Path, tmp_path: Path) -> None:
    assert emhrnn.load(run).predict([NEW]) == ["bad"]
    before = (run / "model.safetensors").read_bytes()
    path = tmp_path / "corrections.jsonl"
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in CORRECTIONS))
    told = cli.ok("train", path, "--from", run, "--out", tmp_path / "run2")
    assert "20 new documents to learn from, 100 from before" in told.err
    model = emhrnn.load(tmp_path / "run2")
    assert model.predict([NEW]) == ["good"]
    assert model.evaluate(*columns(ROWS)).accuracy == 1  # what it knew before
    assert (run / "model.safetensors").read_bytes() == before
    again = cli.ok("train", path, "--from", tmp_path / "run2", "--out", tmp_path / "run3")  # run2 has its documents
    assert "20 new documents to learn from, 100 from before; 0 new words" in again.err
    assert "20" in cli.ok("evaluate", tmp_path / "run3", path).out


def test_documents_that_a_run_learned_from_validate_nothing(cli: Cli, run: Path, tmp_path: Path) -> None:
    """The run was cross-validated: it has learned from all of its documents."""
    assert load_run(run).config.data.folds
    rows = [(f"Visit number{i} was fine.", "good" if i * 7919 % 13 % 2 else "bad") for i in range(240)]
    few, many = write(tmp_path / "few.csv", rows[:20]), write(tmp_path / "many.csv", rows)
    quick = ("--set", "training.threads=1", "--quiet")
    for start, out in ((run, "few"), (tmp_path / "few", "again")):
        told = cli.ok("train", few, "--from", start, "--out", tmp_path / out, *quick)
        assert "probabilities are not calibrated" in told.err
        assert "training documents." in told.out
        assert "For comparison" not in told.out
        assert load_run(tmp_path / out).conformal is None
    told = cli.ok("train", many, "--from", tmp_path / "few", "--out", tmp_path / "many", *quick)
    assert "on 24 validation documents." in told.out
    assert "not calibrated" not in told.err
    assert load_run(tmp_path / "many").conformal is not None
    again = cli.ok("train", few, "--from", tmp_path / "many", "--out", tmp_path / "last", *quick)
    assert "on 24 validation documents." in again.out


def test_names_that_the_model_does_not_read_change_nothing(cli: Cli, tmp_path: Path) -> None:
    """Corrections bring none, and reviews often have a product."""
    named = [{"text": text, "label": label, "product": f"p{n % 7}"} for n, (text, label) in enumerate(ROWS)]
    data, path = tmp_path / "a.jsonl", tmp_path / "run.feedback.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in named))
    path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in CORRECTIONS))
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet")
    cli.ok("train", path, "--from", tmp_path / "run", "--out", tmp_path / "run2", "--quiet")
    assert emhrnn.load(tmp_path / "run2").predict([NEW]) == ["good"]


def test_new_words_and_new_classes(run: Path, tmp_path: Path) -> None:
    rows = [(f"A zorble, glimmering at {i}.", "odd") for i in range(20)]
    model = emhrnn.load(run)
    words = len(model.run.vocabulary)
    assert model.partial_fit(*columns(rows)) is model
    assert model.classes == ("bad", "good", "odd")
    assert len(model.run.vocabulary) > words
    for answers in (model, _saved(model, tmp_path / "more")):
        assert answers.predict(["Such a glimmering zorble."]) == ["odd"]
        assert answers.evaluate(*columns(ROWS)).accuracy == 1


def _saved(model: Model, folder: Path) -> Model:
    model.save(folder)
    return emhrnn.load(folder)


def test_a_run_without_its_documents_learns_too(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = _saved(emhrnn.load(run), tmp_path / "alone")
    model.partial_fit(*columns(CORRECTIONS))
    assert model.predict([NEW]) == ["good"]
    assert "no documents from before" in capsys.readouterr().out


def test_growing_alone_changes_no_answer(run: Path) -> None:
    """With more words, logits are the same; more classes share the smoothing of counts."""
    before = load_run(run, trainable=True)
    vocabulary = before.vocabulary | Vocabulary.from_words(["zorble"])
    texts = [text for text, _ in ROWS[:10]]

    def logits(one: Run) -> np.ndarray:
        found: np.ndarray = one.model.infer(one.encoder.encode(texts)).logits
        return found

    np.testing.assert_array_equal(logits(grown(before, vocabulary, before.classes)), logits(before))
    larger = logits(grown(before, vocabulary, (*before.classes, "odd")))
    assert larger.shape == (10, 3)
    assert larger[:, :2].argmax(axis=1).tolist() == logits(before).argmax(axis=1).tolist()


def test_rows_of_phrases_keep_what_they_have(run: Path) -> None:
    before = load_run(run, trainable=True)
    model = before.model
    assert isinstance(model, Evidence)
    keys, counts = model.ngrams.keys.clone(), model.ngrams.counts.clone()
    texts = [text for text, _ in CORRECTIONS]
    corpus = Corpus.from_texts(texts, ["good"] * 20, vocabulary=before.vocabulary, classes=before.classes)
    model.ngrams.grow([corpus.batch(np.arange(20))])
    places = torch.searchsorted(model.ngrams.keys, keys)
    assert torch.equal(model.ngrams.keys[places], keys)
    assert torch.equal(model.ngrams.counts[places], counts)
    assert bool((model.ngrams.keys[1:] > model.ngrams.keys[:-1]).all())


def test_a_union_has_the_documents_of_both(tmp_path: Path) -> None:
    one = Corpus.from_texts(["a b. c", "b"], ["x", "y"])
    classes = (*one.classes, "z")
    vocabulary = one.vocabulary | Corpus.from_texts(["d"], ["z"]).vocabulary
    two = Corpus.from_texts(["d a", "c"], ["z", "x"], vocabulary=vocabulary, classes=classes)
    both = union([two, one], tmp_path / "both", vocabulary=vocabulary, classes=classes, weights=[2.0, 1.0])
    batch = both.batch(np.arange(4))
    assert both.vocabulary.decode(batch.words) == ["d", "a", "c", "a", "b", ".", "c", "b"]
    assert np.array_equal(batch.labels, [2, 0, 0, 1])  # type: ignore[arg-type]
    assert np.array_equal(both.weights, [2, 2, 1, 1])  # type: ignore[arg-type]
    assert both.report.classes == {"x": 2, "y": 1, "z": 1}


def test_a_union_keeps_marked_words(tmp_path: Path) -> None:
    path = tmp_path / "marked.jsonl"
    path.write_text('{"text": "a b. c", "label": "x", "spans": [[2, 3]]}\n{"text": "c", "label": "y", "spans": []}\n')
    marked = prepare(path, tmp_path / "marked", columns=Columns(spans="spans"), min_count=1, progress=False)
    plain = Corpus.from_texts(["b a"], ["y"], vocabulary=marked.vocabulary, classes=marked.classes)
    both = union([plain, marked], tmp_path / "both", vocabulary=marked.vocabulary, classes=marked.classes)
    batch = both.batch(np.arange(3))
    assert batch.marked is not None
    assert both.vocabulary.decode(batch.words[batch.marked]) == ["b"]
    assert np.flatnonzero(batch.marked).tolist() == [3]


def test_marked_phrases_of_corrections_are_learned_from(cli: Cli, run: Path, tmp_path: Path) -> None:
    """As the viewer saves them: with the phrase marked, it speaks more for the label than without."""
    said, weights = "The waiter at 7 was brisk", []
    for spans in ([[0, len(said)]], []):
        path = tmp_path / f"{len(spans)}.feedback.jsonl"
        row = {"text": f"{said}, the plate chipped.", "label": "good", "spans": spans, "predicted": "bad", "when": ""}
        path.write_text(f"{json.dumps(row)}\n" * 20)
        folder = tmp_path / f"marked-{len(spans)}"
        cli.ok("train", path, "--from", run, "--spans-column", "spans", "--out", folder, "--quiet")
        weights.append(emhrnn.load(folder).predict_proba([said])[0][1])
    assert weights[0] > weights[1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--model", "hn-att"), "has the model evidence"),
        (("--set", "model.longest=3"), "model.longest cannot be changed"),
        (("--resume",), "leave out valid, vectors and resume"),
    ],
)
def test_what_cannot_be_changed_is_refused(
    cli: Cli, run: Path, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    data = write(tmp_path / "a.csv", CORRECTIONS)
    assert told in cli.error("train", data, "--from", run, "--out", tmp_path / "b", *options)
    assert not (tmp_path / "b").exists()


def test_models_that_cannot_continue_and_labels_of_another_kind(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", ROWS)
    cli.ok("train", data, "--out", tmp_path / "fitted", "--model", "tfidf-lr", "--quiet")
    assert "tfidf-lr is fitted in one go" in cli.error("train", data, "--from", tmp_path / "fitted", "--out", "x")
    with pytest.raises(ConfigError, match="fitted in one go"):
        emhrnn.load(tmp_path / "fitted").partial_fit(*columns(ROWS))
    several: list[Any] = [["good", "bad"]] * 20
    with pytest.raises(DataError, match="one label per document"):
        emhrnn.load(run).partial_fit([text for text, _ in CORRECTIONS], several)
    with pytest.raises(DataError, match="none of the model's classes"):
        emhrnn.load(run).evaluate(["A soup."], ["odd"])
