"""How long the phrases are (Table 3), and whether they are the true ones where those are known."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.corpus.batch import Batch

LOW_RATE, HIGH_RATE = 0.02, 0.9  # of the free positions: below and above, phrases are sentences or words


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

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def count_phrase_lengths(z: Bool[np.ndarray, " words"]) -> Int64[np.ndarray, " lengths"]:
    """How many phrases have 0, 1, 2, ... words."""
    ends = np.flatnonzero(z)
    return np.bincount(np.diff(ends, prepend=-1))


def collapse(phrases: PhraseLengths, sentences: int) -> str | None:
    """What is wrong with phrases in so many sentences, or None. Where a sentence ends, a phrase always does."""
    free = round(phrases.mean * phrases.phrases) - sentences
    rate = (phrases.phrases - sentences) / max(free, 1)
    if free and rate < LOW_RATE:
        return f"phrases are whole sentences: only {rate:.1%} of the words within sentences end one"
    if free and rate > HIGH_RATE:
        return f"phrases are single words: {rate:.1%} of the words within sentences end one"
    return None


@dataclass(frozen=True)
class BoundaryAgreement:
    """Precision, recall and F1 of predicted boundaries against the true ones, sentence ends left out: those are given
    to every method, and counting them would flatter it."""

    precision: float
    recall: float
    f1: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def boundary_agreement(
    batch: Batch, predicted: Bool[np.ndarray, " words"], true: Bool[np.ndarray, " words"]
) -> BoundaryAgreement:
    free = ~batch.sentence_final
    hits = int((predicted & true & free).sum())
    precision = hits / max(int((predicted & free).sum()), 1)
    recall = hits / max(int((true & free).sum()), 1)
    f1 = 2 * precision * recall / (precision + recall) if hits else 0.0
    return BoundaryAgreement(precision, recall, f1)
