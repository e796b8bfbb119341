"""Learning from words that people marked."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import emhrnn
from emhrnn.corpus import Columns, prepare
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.record import Where, clean_spans
from emhrnn.errors import ConfigError, DataError
from emhrnn.training.config import make_config
from emhrnn.training.data import Named, untrained
from emhrnn.training.progress import TrainingContext
from emhrnn.training.train import fit
from tests.explain.evidence import make_run

GOOD, BAD = "We came early. The soup was good.", "We came late. The soup was bad."
SETTINGS = {"training.epochs": 2, "model.sentence_weights": 4, "model.encoder_size": 4, "data.min_count": 1}

LONGER = {"training.epochs": 6, "training.patience": 6, "training.learning_rate": 0.2, "training.batch_documents": 8}


def written(path: Path, spans: list[list[int]] | str, times: int = 12) -> Path:
    rows = [{"text": f"{text} {n}", "label": text[-4:-1], "spans": spans} for n in range(times) for text in (GOOD, BAD)]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_spans_mark_the_words_that_they_touch(tmp_path: Path) -> None:
    data = written(tmp_path / "data.jsonl", [[28, 32], [0, 2]], times=2)
    corpus = prepare(data, tmp_path / "corpus", columns=Columns(spans="spans"), progress=False)
    batch = corpus.batch(np.array([0, 3]))
    assert corpus.has_spans
    marked = [corpus.vocabulary.words[word] for word in batch.words[batch.marked]]
    assert marked == ["we", "good", "we", "bad", "."]  # the second text is shorter by two letters
    np.testing.assert_array_equal(corpus.batch(np.array([3])).marked, batch.part(1, 2).marked)
    assert prepare(data, tmp_path / "other", progress=False).batch(np.array([0])).marked is None


def test_only_keeps_words_and_drops_empty_documents() -> None:
    batch = Batch.from_lists([[[1, 2], [3]], [[4]], [[5, 6]]], labels=[0, 1, 2])
    kept = batch.only(np.array([True, False, True, False, False, True]))
    assert kept.words.tolist() == [1, 3, 6]
    assert kept.sentence_offsets.tolist() == [0, 1, 2, 3]
    assert kept.document_offsets.tolist() == [0, 2, 3]
    assert kept.labels.tolist() == [0, 2]
    assert batch.only(np.zeros(6, dtype=bool)) is None


def test_unmarked_documents_change_no_bit(tmp_path: Path) -> None:
    data = written(tmp_path / "data.jsonl", [])
    weights = []
    for name, column in (("plain", None), ("spans", "spans")):
        trained = emhrnn.train(
            data, tmp_path / name, settings=SETTINGS, spans_column=column, label_column="label", progress=False
        )
        weights.append(trained.model.run.model.state_dict())
    for name, values in weights[0].items():
        np.testing.assert_array_equal(values, weights[1][name], err_msg=name)


def test_the_loss_moves_weight_to_marked_sentences(tmp_path: Path) -> None:
    shares = {}
    for name, spans in (("first", [[0, 13]]), ("second", [[15, 32]])):
        data = written(tmp_path / f"{name}.jsonl", spans)
        corpus = prepare(data, tmp_path / name, columns=Columns(spans="spans"), progress=False)
        run = untrained(make_config(settings={**SETTINGS, **LONGER}), corpus, None)
        fit(run, corpus, corpus, TrainingContext(progress=False))
        lambdas = np.asarray(torch.as_tensor(run.model.lambdas(run.encoder.encode([GOOD]))).detach())
        shares[name] = float(lambdas[0] / lambdas.sum())
    assert shares["first"] > shares["second"] + 0.1


def test_the_loss_is_that_of_marked_words_alone() -> None:
    run = make_run(("bad", "good"))
    batch = Batch.from_lists([[[1, 2, 3], [4, 5]], [[6, 7]]], labels=[0, 1])
    marked = np.array([True, True, False, False, False, False, False])
    with_marks = Batch(**{**vars(batch), "marked": marked})
    loss = run.model.rationale_loss(with_marks, torch.Generator().manual_seed(0))
    alone = Batch.from_lists([[[1, 2]]], labels=[0])
    logits = run.model(alone, torch.Generator().manual_seed(0)).logits
    expected = -torch.log_softmax(logits, 1)[0, 0]
    torch.testing.assert_close(loss, expected)  # it weighs no sentences


@pytest.mark.parametrize("value", [[[3, 2]], [[1]], "4-17", [[-1, 2]], 5])
def test_bad_spans_are_refused(value: object) -> None:
    with pytest.raises(DataError, match="row 3 has the spans"):
        clean_spans(value, Where("data.csv", 3))


def test_spans_of_any_format() -> None:
    where = Where("data.csv", 1)
    assert clean_spans("[[4, 17]]", where) == clean_spans([[4, 17]], where) == ((4, 17),)
    assert clean_spans("", where) == clean_spans(None, where) == clean_spans(float("nan"), where) == ()


def test_other_models_do_not_take_spans(tmp_path: Path) -> None:
    data = written(tmp_path / "data.jsonl", [[0, 2]])
    with pytest.raises(ConfigError, match="does not learn from marked spans"):
        emhrnn.train(
            Named(path=data, columns=Columns(spans="spans")), tmp_path / "run",
            settings={"model.name": "hn-att", "training.epochs": 1}, progress=False,
        )  # fmt: skip
