"""Linear classifiers as one weight and one bias, whatever the number of classes."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.models.fitting import NEVER, fit_linear, fit_standardised, labels_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_give_the_probabilities_of_scikit_learn(classes: int) -> None:
    y = np.arange(60) % classes
    weight, bias = fit_linear(X, y, classes, "logistic", 1.0, seed=0)
    logits = X @ weight.numpy().T + bias.numpy()
    ours = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(ours, LogisticRegression().fit(X, y).predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_give_the_predictions_of_the_svm(classes: int) -> None:
    y = np.arange(60) % classes
    weight, bias = fit_linear(X, y, classes, "svm", 1.0, seed=0)
    ours = (X @ weight.numpy().T + bias.numpy()).argmax(1)
    assert np.array_equal(ours, LinearSVC(random_state=0, max_iter=10_000).fit(X, y).predict(X))


def test_several_labels_at_once() -> None:
    y = (X[:, :3] > 0).astype(np.float32)
    weight, bias = fit_linear(X, y, 3, "logistic", 10.0, seed=0)
    assert (((X @ weight.numpy().T + bias.numpy()) > 0) == (y > 0)).mean() > 0.95


def test_a_class_without_documents_is_never_predicted() -> None:
    weight, bias = fit_linear(X, np.arange(60) % 2 * 3, 4, "logistic", 1.0, seed=0)
    assert bias[[1, 2]].tolist() == [NEVER, NEVER]
    assert set((X @ weight.numpy().T + bias.numpy()).argmax(1)) == {0, 3}
    weight, bias = fit_linear(X, np.full(60, 2), 4, "svm", 1.0, seed=0)
    assert bias.argmax() == 2


def test_documents_need_labels() -> None:
    with pytest.raises(DataError, match="documents without labels cannot be fitted"):
        labels_of([Batch.from_lists([[[1]]])])


@pytest.mark.parametrize("kind", ["logistic", "svm"])
@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_a_weight_counts_repetitions(kind: str, several: bool) -> None:
    y = (X[:, :3] > 0).astype(np.float32) if several else np.arange(60) % 3
    times = np.arange(60) % 4  # a quarter of the documents is not there
    times[y[:, 0] > 0 if several else y == 1] = 0  # nor a whole class
    ours = fit_linear(X, y, 3, kind, 1.0, seed=0, weights=times.astype(np.float32))
    theirs = fit_linear(np.repeat(X, times, 0), np.repeat(y, times, 0), 3, kind, 1.0, seed=0)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=5e-3)
    features = torch.from_numpy(5 * X + 2)
    ours = fit_standardised(features, y, 3, kind, 1.0, seed=0, weights=times.astype(np.float32))
    repeated = features.repeat_interleave(torch.from_numpy(times), 0)
    theirs = fit_standardised(repeated, np.repeat(y, times, 0), 3, kind, 1.0, seed=0)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, atol=5e-3)


def test_standardising_does_not_change_what_a_feature_means() -> None:
    y = np.arange(60) % 2
    weight, bias = fit_standardised(torch.from_numpy(X), y, 2, "logistic", 1e6, seed=0)
    plain_weight, plain_bias = fit_linear(X, y, 2, "logistic", 1e6, seed=0)
    np.testing.assert_allclose(weight, plain_weight, atol=1e-3)
    np.testing.assert_allclose(bias, plain_bias, atol=1e-3)
