"""Models that are fitted in one go instead of by steps of gradient descent, and the linear classifiers inside them.

They are modules like the others, `model(batch) -> Output`; `fit` fills their buffers, whose shapes are known before, so
that they are saved and loaded like any weights.
"""

from collections.abc import Iterable
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError

Classifier = Literal["logistic", "svm"]
Features: TypeAlias = sparse.csr_matrix | Float[np.ndarray, "documents features"]

NEVER = -50.0  # the logit of a class that training has not shown


@runtime_checkable
class Fitted(Protocol):
    """`batches` is read several times: give a list, or an object that starts anew at each `iter`."""

    def fit(self, batches: Iterable[Batch], seed: int) -> None: ...


def labels_of(batches: Iterable[Batch]) -> np.ndarray:
    """All labels, (documents,) or for multi-label data (documents, classes)."""
    labels = [batch.labels for batch in batches]
    if not labels or any(part is None for part in labels):
        raise DataError("documents without labels cannot be fitted; give data with a label column")
    return np.concatenate([part for part in labels if part is not None])


def fit_linear(
    features: Features, labels: np.ndarray, classes: int, kind: Classifier, C: float, seed: int
) -> tuple[Float[Tensor, "classes features"], Float[Tensor, " classes"]]:
    """Weight and bias of a linear classifier: logits = features @ weight.T + bias. C is the inverse strength of its
    regularisation. Multi-label data get one yes/no classifier per class. The logits of an SVM are margins."""
    if labels.ndim == 2:
        columns = [_fit(features, column.astype(np.int64), kind, C, seed) for column in labels.T]
        # a yes/no classifier's second row minus its first is the log-odds of yes
        rows = [_spread(*fitted, classes=2) for fitted in columns]
        weight = np.stack([pair[1] - pair[0] for pair, _ in rows])
        bias = np.array([pair[1] - pair[0] for _, pair in rows])
    else:
        weight, bias = _spread(*_fit(features, labels, kind, C, seed), classes=classes)
    return torch.from_numpy(weight.astype(np.float32)), torch.from_numpy(bias.astype(np.float32))


def _fit(
    features: Features, labels: np.ndarray, kind: Classifier, C: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight, bias and the class of each of their rows, as scikit-learn gives them."""
    present = np.unique(labels)
    if len(present) == 1:
        return np.zeros((1, features.shape[1])), np.zeros(1), present
    if kind == "logistic":
        model = LogisticRegression(C=C, max_iter=1000)
    else:
        model = LinearSVC(C=C, max_iter=10_000, random_state=seed)
    model.fit(features, labels)
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
