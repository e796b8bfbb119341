"""Probabilities that mean something: of the documents that get 80 %, about 80 % should be right.

    p = softmax(logits / T), or sigmoid(logits / T) where a document may have several labels

One number T, fitted on validation data to make the labels most likely, turns the confidence of all predictions up or
down together. It does not change which class is predicted (`models.predictor.probabilities` sees to the rounding).

    ECE = sum over bins of confidence: share of predictions in the bin * |share that is right - mean confidence|
"""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from emhrnn.evaluation.decision import Abstention
from emhrnn.shapes import Float, Int64

BINS = 15  # of equal width
LOWEST, HIGHEST = 0.1, 10.0  # of T. What lies outside comes from a few documents, not from a habit of the model
FEWEST = 20  # documents that T is fitted on
NOT_FITTED = "not fitted: "  # begins a remark that says why
_CLOSE = 1e-10  # to 1/T
_STEPS = 200  # far more than Newton takes, and enough for halving alone

Logits = Float[np.ndarray, "documents classes"]
Labels = Int64[np.ndarray, " documents"] | Float[np.ndarray, "documents classes"]


@dataclass(frozen=True)
class Bin:
    """Predictions whose confidence lies in (low, high]."""

    low: float
    high: float
    predictions: int
    confidence: float  # mean; 0 in an empty bin
    right: float  # share; 0 in an empty bin


@dataclass(frozen=True)
class Calibration:
    """What the fit of T came to on the data it was fitted on."""

    temperature: float
    documents: int
    loss_before: float
    loss_after: float
    ece_before: float
    ece_after: float
    before: list[Bin]
    after: list[Bin]
    remark: str = ""  # why T is what it is, where the data could not decide
    shares: dict[str, float] | None = None  # `DocumentModel.shares`, of a model that has some
    source: str | None = None  # the file of the documents; None: the validation data
    abstentions: list[Abstention] = field(default_factory=list)  # empty for several labels per document

    @property
    def undecided(self) -> str:
        """Why the data could not decide about anything, so that T and all shares are 1; empty: they could."""
        alike = self.shares is None or set(self.shares.values()) == {1.0}
        return self.remark.removeprefix(NOT_FITTED) if alike and self.remark.startswith(NOT_FITTED) else ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def reliability(probabilities: Float[np.ndarray, "documents classes"], labels: Labels) -> list[Bin]:
    """How often predictions of each confidence are right.

    One label: the confidence is that of the predicted class. Several labels: each document and class is a prediction
    that the label is there, and its probability is the confidence."""
    if labels.ndim == 2:
        confidence, right = probabilities.ravel(), labels.ravel() > 0.5
    else:
        confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    confidence = confidence.astype(np.float64)
    place = np.clip(np.ceil(confidence * BINS).astype(np.int64) - 1, 0, BINS - 1)
    counts = np.bincount(place, minlength=BINS)
    some = np.maximum(counts, 1)
    means = np.bincount(place, confidence, BINS) / some
    shares = np.bincount(place, right, BINS) / some
    rows = zip(counts, means, shares, strict=True)
    return [Bin(b / BINS, (b + 1) / BINS, int(n), float(p), float(r)) for b, (n, p, r) in enumerate(rows)]


def expected_calibration_error(bins: list[Bin]) -> float:
    """0: every confidence is the share that is right. 1: always certain, always wrong."""
    total = sum(b.predictions for b in bins)
    return sum(b.predictions * abs(b.right - b.confidence) for b in bins) / max(total, 1)


def fit_temperature(logits: Logits, labels: Labels) -> tuple[float, str]:
    """T between LOWEST and HIGHEST that makes the labels most likely; and a remark where the data could not decide:
    too few documents, or none that is predicted wrong, which would make every confidence as high as allowed."""
    x = logits.astype(np.float64)
    if remark := undecided(x, labels):
        return 1.0, remark
    temperature = 1 / _root(x, labels)
    if temperature in (LOWEST, HIGHEST):
        return temperature, f"at the limit: T is kept between {LOWEST:g} and {HIGHEST:g}"
    return temperature, ""


def undecided(x: Logits, labels: Labels) -> str:
    """Why these documents cannot tell how sure predictions should be; empty: they can."""
    if len(labels) < FEWEST:
        return f"{NOT_FITTED}{len(labels)} documents are too few, {FEWEST} are needed"
    if not np.isfinite(x).all():
        return f"{NOT_FITTED}a logit is not finite"
    wrong = ((x > 0) != (labels > 0.5)) if labels.ndim == 2 else (x.argmax(axis=1) != labels)
    if not wrong.any():
        return f"{NOT_FITTED}every prediction is right, so there is no telling how sure is too sure"
    return ""


def _root(x: Float[np.ndarray, "documents classes"], labels: Labels) -> float:
    """b = 1/T at which the loss is least. The loss is convex in b, so its slope rises through zero once: Newton's step
    where it stays within the bracket, else its middle."""
    low, high, b = 1 / HIGHEST, 1 / LOWEST, 1.0
    if _slopes(x, labels, low)[0] >= 0:
        return low
    if _slopes(x, labels, high)[0] <= 0:
        return high
    for _ in range(_STEPS):
        slope, curvature = _slopes(x, labels, b)
        if slope > 0:
            high = b
        else:
            low = b
        step = b - slope / curvature if curvature > 0 else low
        following = step if low < step < high else (low + high) / 2
        if abs(following - b) < _CLOSE:
            return following
        b = following
    return b


def _slopes(x: Float[np.ndarray, "documents classes"], labels: Labels, b: float) -> tuple[float, float]:
    """First and second derivative of the mean loss by b: E[x] - x_y, and the variance of x, under p = softmax(b x)."""
    if labels.ndim == 2:
        p = np.exp(-np.logaddexp(0, -b * x))  # sigmoid, without overflow
        return float(((p - (labels > 0.5)) * x).sum(axis=1).mean()), float((p * (1 - p) * x**2).sum(axis=1).mean())
    p = np.exp(b * (x - x.max(axis=1, keepdims=True)))
    p /= p.sum(axis=1, keepdims=True)
    mean = (p * x).sum(axis=1)
    variance = (p * (x - mean[:, None]) ** 2).sum(axis=1)
    return float((mean - x[np.arange(len(labels)), labels]).mean()), float(variance.mean())
