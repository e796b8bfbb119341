"""Scores against scikit-learn, on random predictions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.scores import PhraseLengths, boundary_agreement, count_phrase_lengths, score


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
    agreement = boundary_agreement(batch, np.array([0, 1, 1, 1, 0, 1], dtype=bool), true)
    assert (agreement.precision, agreement.recall, agreement.f1) == (0.5, 0.5, 0.5)
    assert boundary_agreement(batch, batch.sentence_final, true).f1 == 0
