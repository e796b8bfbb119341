"""Accuracy, macro-F1, loss, calibration error and confusion of a set of predictions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from emhrnn.evaluation.calibration import Bin, expected_calibration_error, reliability
from emhrnn.evaluation.phrases import PhraseLengths

# What may pick the best epoch, and whether more (1) or less (-1) of it is better.
METRICS = {"accuracy": 1, "macro_f1": 1, "loss": -1, "ece": -1}
_SMALLEST = 1e-12  # a probability of exactly 0 would make the loss infinite


@dataclass(frozen=True)
class ClassScore:
    name: str
    documents: int
    precision: float
    recall: float
    f1: float


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

    def metrics(self) -> dict[str, float]:
        """The numbers that the history holds."""
        return {name: float(getattr(self, name)) for name in METRICS}

    def to_dict(self) -> dict[str, Any]:
        return {
            "documents": self.documents,
            "accuracy": self.accuracy,
            "macro_f1": self.macro_f1,
            "loss": self.loss,
            "ece": self.ece,
            "classes": {
                score.name: {
                    "documents": score.documents,
                    "precision": score.precision,
                    "recall": score.recall,
                    "f1": score.f1,
                }
                for score in self.classes
            },
            "confusion": self.confusion,
            "reliability": [asdict(b) for b in self.reliability],
            "phrases": None if self.phrases is None else self.phrases.to_dict(),
        }


def score(
    probabilities: Float[np.ndarray, "documents classes"],
    labels: Int64[np.ndarray, " documents"] | Float[np.ndarray, "documents classes"],
    classes: Sequence[str],
    phrases: PhraseLengths | None = None,
) -> Scores:
    if labels.ndim == 2:
        return _score_multi_label(probabilities, labels > 0.5, classes, phrases)
    predicted = probabilities.argmax(axis=1)
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    per_class = _class_scores(confusion.diagonal(), confusion.sum(axis=0), confusion.sum(axis=1), classes)
    bins = reliability(probabilities, labels)
    true_probability = probabilities[np.arange(len(labels)), labels]
    return Scores(
        documents=len(labels),
        accuracy=float((predicted == labels).mean()),
        macro_f1=_macro_f1(per_class),
        loss=float(-np.log(np.maximum(true_probability, _SMALLEST)).mean()),
        classes=per_class,
        confusion=confusion.tolist(),
        ece=expected_calibration_error(bins),
        reliability=bins,
        phrases=phrases,
    )


def _score_multi_label(
    probabilities: Float[np.ndarray, "documents classes"],
    labels: np.ndarray,
    classes: Sequence[str],
    phrases: PhraseLengths | None,
) -> Scores:
    predicted = probabilities > 0.5
    per_class = _class_scores((predicted & labels).sum(axis=0), predicted.sum(axis=0), labels.sum(axis=0), classes)
    bins = reliability(probabilities, labels.astype(np.float64))
    right = np.where(labels, probabilities, 1 - probabilities)
    return Scores(
        documents=len(labels),
        accuracy=float((predicted == labels).all(axis=1).mean()),
        macro_f1=_macro_f1(per_class),
        loss=float(-np.log(np.maximum(right, _SMALLEST)).sum(axis=1).mean()),
        classes=per_class,
        confusion=None,
        ece=expected_calibration_error(bins),
        reliability=bins,
        phrases=phrases,
    )


def _class_scores(
    hits: np.ndarray, predicted: np.ndarray, true: np.ndarray, classes: Sequence[str]
) -> list[ClassScore]:
    precision = hits / np.maximum(predicted, 1)
    recall = hits / np.maximum(true, 1)
    f1 = 2 * hits / np.maximum(predicted + true, 1)
    return [
        ClassScore(name, int(n), float(p), float(r), float(f))
        for name, n, p, r, f in zip(classes, true, precision, recall, f1, strict=True)
    ]


def _macro_f1(per_class: list[ClassScore]) -> float:
    """Mean F1 over the classes that occur; a class with no document in this data says nothing about it."""
    present = [score.f1 for score in per_class if score.documents > 0]
    return float(np.mean(present)) if present else 0.0
