"""Accuracy, macro-F1, AUC, loss, calibration error and confusion of a set of predictions; phrase lengths (Table 3),
and how well phrase ends agree with the true ones where those are known."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.calibration import Bin, expected_calibration_error, reliability
from emhrnn.shapes import Bool, Float, Int64


@dataclass(frozen=True)
class PhraseLengths:
    """Phrase lengths in words; `histogram[k]` counts phrases of k + 1 words."""

    phrases: int
    mean: float
    shortest: int
    longest: int
    histogram: list[int]

    @classmethod
    def of(cls, histogram: Int64[np.ndarray, " lengths"]) -> "PhraseLengths":
        """From counts by length, as `count_phrase_lengths` gives them (index 0 is never used)."""
        lengths = np.flatnonzero(histogram)
        total = int(histogram.sum())
        return cls(
            phrases=total,
            mean=float((np.arange(len(histogram)) * histogram).sum() / total),
            shortest=int(lengths[0]),
            longest=int(lengths[-1]),
            histogram=histogram[1 : lengths[-1] + 1].tolist(),
        )


def count_phrase_lengths(z: Bool[np.ndarray, " words"]) -> Int64[np.ndarray, " lengths"]:
    """How many phrases have 0, 1, 2, ... words."""
    ends = np.flatnonzero(z)
    return np.bincount(np.diff(ends, prepend=-1))


@dataclass(frozen=True)
class BoundaryAgreement:
    """Predicted boundaries against the true ones, sentence ends left out: those are given to every method, and counting
    them would flatter it. Counts may be means over several predictions."""

    predicted: float
    gold: int
    both: float

    @property
    def precision(self) -> float:
        return self.both / max(self.predicted, 1)

    @property
    def recall(self) -> float:
        return self.both / max(self.gold, 1)

    @property
    def f1(self) -> float:
        return 2 * self.both / (self.predicted + self.gold) if self.both else 0.0

    def to_dict(self) -> dict[str, float]:
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


def boundary_agreement(
    batch: Batch, true: Bool[np.ndarray, " words"], *predicted: Bool[np.ndarray, " words"]
) -> BoundaryAgreement:
    """How well predicted phrase ends agree with the true ones, over the words of a batch; of several predictions, on
    average."""
    free = ~batch.sentence_final
    counts = [((z & free).sum(), (z & true & free).sum()) for z in predicted]
    found, both = np.mean(counts, axis=0).tolist()
    return BoundaryAgreement(found, int((true & free).sum()), both)


# What may pick the best epoch, and whether more (1) or less (-1) of it is better.
METRICS = {"accuracy": 1, "macro_f1": 1, "loss": -1, "ece": -1}
Ranked = tuple[float | None, float | None]  # AUC and average precision
_SMALLEST = 1e-12  # a probability of exactly 0 would make the loss infinite


@dataclass(frozen=True)
class ClassScore:
    """Of one class; `documents` are those that have it. `auc` and `average_precision` (the area under the curve of
    precision and recall) rank all documents by the probability of the class; None where all or none have it."""

    name: str
    documents: int
    precision: float
    recall: float
    f1: float
    auc: float | None = None
    average_precision: float | None = None


@dataclass(frozen=True)
class Scores:
    """For multi-label data accuracy is the share of documents with all labels right, and there is no confusion."""

    documents: int
    accuracy: float
    macro_f1: float
    loss: float
    classes: list[ClassScore]
    confusion: list[list[int]] | None  # rows: true class, columns: predicted class
    ece: float  # expected calibration error
    reliability: list[Bin]
    phrases: PhraseLengths | None = None

    @property
    def auc(self) -> float | None:
        """Mean of the classes, each against all others; None where it is not defined for any."""
        return _mean([score.auc for score in self.classes])

    @property
    def average_precision(self) -> float | None:
        """Mean of the classes, as `auc`."""
        return _mean([score.average_precision for score in self.classes])

    def metrics(self) -> dict[str, float]:
        """The numbers that the history holds."""
        return {name: float(getattr(self, name)) for name in METRICS}

    def to_dict(self) -> dict[str, Any]:
        """With `classes` by name, and the means over them."""
        values = {**asdict(self), "auc": self.auc, "average_precision": self.average_precision}
        return {**values, "classes": {one.pop("name"): one for one in values["classes"]}}


def score(
    probabilities: Float[np.ndarray, "documents classes"],
    labels: Int64[np.ndarray, " documents"] | Float[np.ndarray, "documents classes"],
    classes: Sequence[str],
    phrases: PhraseLengths | None = None,
) -> Scores:
    """Scores of predictions; the prediction is the most probable class, or every one above 0.5 of several labels."""
    confusion = None
    if labels.ndim == 2:
        true, predicted = labels > 0.5, probabilities > 0.5
        losses = _losses(np.where(true, probabilities, 1 - probabilities)).sum(axis=1)
    else:
        true, predicted = (ids[:, None] == np.arange(len(classes)) for ids in (labels, probabilities.argmax(axis=1)))
        losses = _losses(probabilities[true])
        confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
        np.add.at(confusion, (labels, probabilities.argmax(axis=1)), 1)
    per_class = _class_scores(true, predicted, probabilities, classes)
    bins = reliability(probabilities, labels)
    return Scores(
        documents=len(labels),
        accuracy=float((predicted == true).all(axis=1).mean()),
        macro_f1=_mean([score.f1 for score in per_class if score.documents]) or 0.0,  # of the classes that occur
        loss=float(losses.mean()),
        classes=per_class,
        confusion=None if confusion is None else confusion.tolist(),
        ece=expected_calibration_error(bins),
        reliability=bins,
        phrases=phrases,
    )


def _losses(true_probabilities: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    losses: np.ndarray = -np.log(np.maximum(true_probabilities, _SMALLEST))
    return losses


def _class_scores(
    true: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray, classes: Sequence[str]
) -> list[ClassScore]:
    hits, found, documents = (predicted & true).sum(axis=0), predicted.sum(axis=0), true.sum(axis=0)
    precision, recall = hits / np.maximum(found, 1), hits / np.maximum(documents, 1)
    f1, ranked = 2 * hits / np.maximum(found + documents, 1), _ranked(probabilities, true)
    return [
        ClassScore(name, int(n), float(p), float(r), float(f), *areas)
        for name, n, p, r, f, areas in zip(classes, documents, precision, recall, f1, ranked, strict=True)
    ]


def _ranked(
    probabilities: Float[np.ndarray, "documents classes"], labels: Bool[np.ndarray, "documents classes"]
) -> list[Ranked]:
    """AUC and average precision of each class. Documents with the same probability have the same rank."""
    documents = len(labels)
    found: list[Ranked] = []
    for shares, has in zip(probabilities.T, labels.T, strict=True):
        positives = int(has.sum())
        if not 0 < positives < documents:
            found.append((None, None))
            continue
        order = np.argsort(-shares, kind="stable")
        last = np.flatnonzero(np.diff(shares[order], append=np.nan) != 0)  # of each run of equal probabilities
        hits, taken = np.cumsum(has[order])[last], last + 1
        new, others = np.diff(hits, prepend=0), np.diff(taken - hits, prepend=0)
        above = others.sum() - np.cumsum(others) + others / 2  # others below each run, and half of those in it
        auc = (new * above).sum() / (positives * (documents - positives))
        found.append((float(auc), float((new * hits / taken).sum() / positives)))
    return found


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
