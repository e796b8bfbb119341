"""Models that are fitted in one go instead of by steps of gradient descent, and the linear classifiers inside them.

They are modules like the others, `model(batch) -> Output`; `fit` fills their buffers, which are saved and loaded like
any weights.
"""

from collections.abc import Iterable
from typing import Literal, TypeAlias

import numpy as np
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.shapes import Float, Float32

Classifier = Literal["logistic", "svm"]
Features: TypeAlias = sparse.csr_matrix | Float[np.ndarray, "documents features"]
Weights: TypeAlias = Float32[np.ndarray, " documents"] | None

NEVER = -50.0  # the logit of a class that training has not shown


def labels_of(batches: Iterable[Batch]) -> np.ndarray:
    """All labels, (documents,) or for multi-label data (documents, classes)."""
    labels = [batch.labels for batch in batches]
    if not labels or any(part is None for part in labels):
        raise DataError("documents without labels cannot be fitted; give data with a label column")
    return np.concatenate([part for part in labels if part is not None])


def weights_of(batches: Iterable[Batch]) -> Weights:
    """The weight of each document, or None where all count 1."""
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return np.concatenate(weights) if weights else None


def fit_linear(
    features: Features,
    labels: np.ndarray,
    classes: int,
    kind: Classifier,
    C: float,
    seed: int,
    weights: Weights = None,
) -> tuple[Float[Tensor, "classes features"], Float[Tensor, " classes"]]:
    """Weight and bias of a linear classifier: logits = features @ weight.T + bias. C is the inverse strength of its
    regularisation. Multi-label data get one yes/no classifier per class. The logits of an SVM are margins.
    `weights` are those of the documents; a document of weight 0 is as if it were not there."""
    if weights is not None:
        used = np.flatnonzero(weights)
        features, labels, weights = features[used], labels[used], weights[used]
    if labels.ndim == 2:
        columns = [_fit(features, column.astype(np.int64), kind, C, seed, weights) for column in labels.T]
        # a yes/no classifier's second row minus its first is the log-odds of yes
        rows = [_spread(*fitted, classes=2) for fitted in columns]
        weight = np.stack([pair[1] - pair[0] for pair, _ in rows])
        bias = np.array([pair[1] - pair[0] for _, pair in rows])
    else:
        weight, bias = _spread(*_fit(features, labels, kind, C, seed, weights), classes=classes)
    return torch.from_numpy(weight.astype(np.float32)), torch.from_numpy(bias.astype(np.float32))


def fit_standardised(
    features: Float[Tensor, "documents features"],
    labels: np.ndarray,
    classes: int,
    kind: Classifier,
    C: float,
    seed: int,
    weights: Weights = None,
) -> tuple[Float[Tensor, "classes features"], Float[Tensor, " classes"]]:
    """The same on features of mean 0 and variance 1, as solvers like them; mean and scale then go into the result."""
    share = torch.full((len(features),), 1 / len(features)) if weights is None else torch.from_numpy(weights)
    share = (share.double() / share.double().sum())[:, None]
    features = features.double()
    mean = (share * features).sum(0)
    scale = (share * (features - mean).square()).sum(0).sqrt().clamp_min(1e-6)
    standard = ((features - mean) / scale).numpy()
    weight, bias = fit_linear(standard, labels, classes, kind, C, seed, weights)
    return (weight / scale).float(), (bias - weight.double() @ (mean / scale)).float()


def _fit(
    features: Features, labels: np.ndarray, kind: Classifier, C: float, seed: int, weights: Weights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight, bias and the class of each of their rows, as scikit-learn gives them."""
    present = np.unique(labels)
    if len(present) == 1:
        return np.zeros((1, features.shape[1])), np.zeros(1), present
    if kind == "logistic":
        model = LogisticRegression(C=C, max_iter=1000)
    else:
        model = LinearSVC(C=C, max_iter=10_000, random_state=seed)
    model.fit(features, labels, sample_weight=weights)
    return model.coef_, model.intercept_, model.classes_


def _spread(
    weight: np.ndarray, bias: np.ndarray, present: np.ndarray, *, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """One row for each class. For two, scikit-learn keeps one score, of the second: here each gets half of it."""
    if len(present) == 2:
        weight, bias = np.concatenate([-weight, weight]) / 2, np.concatenate([-bias, bias]) / 2
    all_weight, all_bias = np.zeros((classes, weight.shape[1])), np.full(classes, NEVER)
    all_weight[present], all_bias[present] = weight, bias
    return all_weight, all_bias
