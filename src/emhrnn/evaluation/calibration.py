"""Probabilities that mean something: of the documents that get 80 %, about 80 % should be right.

    p = softmax(logits / T), or sigmoid(logits / T) where a document may have several labels

One number T, fitted on validation data to make the labels most likely, turns the confidence of all predictions up or
down together. It does not change which class is predicted (`models.output.probabilities` sees to the rounding).

    ECE = sum over bins of confidence: share of predictions in the bin * |share that is right - mean confidence|

A model of several experts has a share for each, fitted on data that none of them has learned from:

    logits = sum over experts e of share_e * logits_e,        share_e >= 0
    minimise    sum over documents of -log p(label) + 1/2 sum_e (share_e - 1)^2        convex in the shares

Each expert was fitted to the labels alone, so their plain product counts twice what several of them know, and
over-weights an expert that memorised its training documents. The normal prior around 1 decides where documents are few.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float64, Int64, Shaped
from scipy.optimize import minimize

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
    shares: dict[str, float] | None = None  # of each expert, where there are several
    source: str | None = None  # the file of the documents; None: the validation data

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
    return float((mean - _true(x, labels)).mean()), float(variance.mean())


def _true(x: Float[np.ndarray, "documents classes"], labels: Shaped[np.ndarray, " documents"]) -> np.ndarray:
    true: np.ndarray = x[np.arange(len(labels)), labels]
    return true


MOST = 10.0  # share of an expert. What lies above comes from a few documents
ENOUGH = 50_000  # documents, from all over the data: more would not move the shares, and would take memory
_CLOSE_LOSS = 1e-9  # to the least, per document

Said = Float[np.ndarray, "experts documents classes"]


def fit_shares(said: Said, labels: Labels) -> tuple[Float64[np.ndarray, " experts"], str]:
    """Of each expert; and a remark where the data could not decide, so that all count as they are."""
    alike = np.ones(len(said))
    some = slice(None, None, 1 + len(labels) // (ENOUGH + 1))
    x, labels = said[:, some].astype(np.float64), labels[some]
    if remark := undecided(x.sum(axis=0), labels):
        return alike, remark
    fitted = minimize(
        _loss, alike, args=(x, labels), jac=True, method="L-BFGS-B", bounds=[(0, MOST)] * len(x),
        options={"ftol": _CLOSE_LOSS, "gtol": _CLOSE_LOSS},
    )  # fmt: skip
    return fitted.x, ""


def _loss(shares: Float64[np.ndarray, " experts"], x: Said, labels: Labels) -> tuple[float, np.ndarray]:
    """What is minimised, by document, and its gradient: that of a document is E[x_e] - x_e of the label."""
    logits = np.tensordot(shares, x, axes=1)  # (documents, classes)
    if labels.ndim == 2:
        loss = (np.logaddexp(0, logits) - (labels > 0.5) * logits).sum()
        wrong = np.exp(-np.logaddexp(0, -logits)) - (labels > 0.5)  # sigmoid, without overflow
    else:
        true = np.arange(len(labels)), labels
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        loss = -log_p[true].sum()
        wrong = np.exp(log_p)
        wrong[true] -= 1
    gradient = np.tensordot(x, wrong, axes=2)  # (experts,)
    n = len(labels)
    return float(loss + 0.5 * ((shares - 1) ** 2).sum()) / n, (gradient + shares - 1) / n
