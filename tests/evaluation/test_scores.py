"""Scores against scikit-learn, on random predictions."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from emhrnn.api import train
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.evaluation.scores import PhraseLengths, boundary_agreement, count_phrase_lengths, score
from emhrnn.paper.em.objective import advice
from emhrnn.training.config import make_config, with_settings


@given(st.integers(1, 60), st.integers(2, 6), st.integers(0, 10**6))
def test_single_label_equals_scikit_learn(documents: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probabilities = rng.dirichlet(np.ones(classes), documents)
    labels = rng.integers(0, classes, documents)
    scores = score(probabilities, labels, [str(c) for c in range(classes)])
    predicted = probabilities.argmax(axis=1)
    present = np.unique(labels)
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(labels, predicted))
    f1 = metrics.f1_score(labels, predicted, labels=present, average="macro", zero_division=0)
    assert scores.macro_f1 == pytest.approx(f1)
    assert scores.loss == pytest.approx(metrics.log_loss(labels, probabilities, labels=range(classes)))
    assert scores.confusion == metrics.confusion_matrix(labels, predicted, labels=range(classes)).tolist()


@given(st.integers(1, 40), st.integers(2, 5), st.integers(0, 10**6))
def test_multi_label_equals_scikit_learn(documents: int, classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probabilities = rng.random((documents, classes))
    labels = (rng.random((documents, classes)) < 0.4).astype(np.float32)
    scores = score(probabilities, labels, [str(c) for c in range(classes)])
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(labels, probabilities > 0.5))
    assert scores.confusion is None
    f1 = metrics.f1_score(labels, probabilities > 0.5, average=None, zero_division=0)
    assert [c.f1 for c in scores.classes] == pytest.approx(f1.tolist())


def test_a_certain_mistake_has_a_finite_loss() -> None:
    scores = score(np.array([[1.0, 0.0]]), np.array([1]), ["a", "b"])
    assert np.isfinite(scores.loss)
    assert scores.accuracy == 0


def test_phrase_lengths() -> None:
    z = np.array([1, 0, 0, 1, 0, 1], dtype=bool)
    lengths = PhraseLengths.of(count_phrase_lengths(z))
    assert (lengths.phrases, lengths.mean, lengths.shortest, lengths.longest) == (3, 2.0, 1, 3)
    assert lengths.histogram == [1, 1, 1]


def test_boundary_agreement_ignores_sentence_ends() -> None:
    batch = Batch.from_lists([[[0, 1, 2, 3], [4, 5]]])
    true = np.array([0, 1, 0, 1, 1, 1], dtype=bool)
    agreement = boundary_agreement(batch, true, np.array([0, 1, 1, 1, 0, 1], dtype=bool))
    assert (agreement.precision, agreement.recall, agreement.f1) == (0.5, 0.5, 0.5)
    assert boundary_agreement(batch, true, batch.sentence_final).f1 == 0


SMALL = {
    "model.name": "em-hrnn", "model.embedding_size": 6, "model.word_size": 4, "model.phrase_size": 4,
    "model.sentence_size": 4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"em.impute": "prior", "em.hold_rate": False, "model.pauses": False}, True), ({}, False)],
)
def test_training_tells_it(tmp_path: Path, settings: dict[str, object], told: bool) -> None:
    """No pi exceeds one half when training begins, so that the rule of the paper cuts nothing."""
    data = tmp_path / "reviews.jsonl"
    data.write_text(
        "".join(json.dumps({"text": r.text, "label": r.label}) + "\n" for r in generate_reviews(60, seed=0))
    )
    said: list[str] = []
    train(
        data,
        tmp_path / "run",
        settings={**SMALL, "training.epochs": 1, **settings},
        progress=False,
        say=said.append,
    )
    assert any("whole sentences" in line and "--set em.impute=rate" in line for line in said) == told


@pytest.mark.parametrize(
    ("settings", "ends", "told"),
    [
        ({"em.impute": "prior"}, 0.1, "--set em.impute=rate --set em.hold_rate=true keeps em.rate of them"),
        ({"em.hold_rate": False}, 0.4, "--set em.impute=rate --set em.hold_rate=true keeps em.rate of them"),
        ({}, 0.4, "sentence ends alone are 40.0% of the words, so em.rate = 0.23 leaves no others; raise it"),
        ({"em.rate": 0.95}, 0.1, "em.rate is 0.95; give another"),
    ],
)
def test_advice_is_not_what_is_set_already(settings: dict[str, object], ends: float, told: str) -> None:
    assert advice(with_settings(make_config(model="em-hrnn"), settings).em, ends) == told


def test_very_short_sentences_are_told_with_what_helps(tmp_path: Path) -> None:
    data = tmp_path / "short.jsonl"
    lines = [{"text": f"Good {i}. So good." if i % 2 else f"Bad {i}. So bad.", "label": i % 2} for i in range(60)]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said: list[str] = []
    train(
        data,
        tmp_path / "run",
        settings={**SMALL, "training.epochs": 2},
        progress=False,
        say=said.append,
    )
    assert any("whole sentences" in line and line.endswith("leaves no others; raise it") for line in said), said


@given(st.integers(2, 40), st.integers(0, 1000))
def test_ranking_equals_scikit_learn(documents: int, seed: int) -> None:
    """Also where many documents have the same probability."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=documents)
    shares = rng.dirichlet(np.ones(3), size=documents).round(1)
    for number, found in enumerate(score(shares, labels, ["a", "b", "c"]).classes):
        has = labels == number
        if 0 < has.sum() < documents:
            assert found.auc == pytest.approx(metrics.roc_auc_score(has, shares[:, number]))
            assert found.average_precision == pytest.approx(metrics.average_precision_score(has, shares[:, number]))
        else:
            assert found.auc is found.average_precision is None
