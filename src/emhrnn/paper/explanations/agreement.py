"""How well scores of words agree with what people marked: sums for each document, from which figures, intervals over
documents and differences between methods follow.

tokens (ERASER)   AUPRC: average precision of the token scores, mean over documents; ties count as one step
                  F1 and IOU F1: of the best tokens, as many as people mark on average (the human rate); by tokens, and
                  by spans that overlap a marked span by half of their union or more
parts (SST, ...)  sign: share of the parts that people do not find neutral where the score has the sign of the rating
                  rank: Spearman correlation of scores and ratings over all parts
pairs (edited)    top k: share of the pairs where one of the k best units has a word that the edit took away
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
from scipy.stats import rankdata

from emhrnn.paper.significance import LEVEL
from emhrnn.shapes import Bool, Float, Float64, Int64

Sums = Float64[np.ndarray, "documents columns"]
Figure = Callable[[Float64[np.ndarray, "n columns"]], Float64[np.ndarray, " n"]]  # of n sums
TOP = (1, 3, 5)
BOOTSTRAPS = 2_000


@dataclass(frozen=True)
class Mean:
    """With the bootstrap's 95 % interval over documents."""

    value: float
    low: float
    high: float


def share(part: int, whole: int) -> Figure:
    return lambda sums: sums[:, part] / np.maximum(sums[:, whole], 1e-12)


def _correlation(sums: Float64[np.ndarray, "n columns"]) -> Float64[np.ndarray, " n"]:
    n, x, y, xx, yy, xy = (sums[:, column] for column in range(2, 8))
    spread = (n * xx - x**2) * (n * yy - y**2)
    correlation: np.ndarray = (n * xy - x * y) / np.sqrt(np.maximum(spread, 1e-12))
    return correlation


# The first is the one that methods are compared by.
TOKEN_FIGURES: Mapping[str, Figure] = {"AUPRC": share(0, 3), "token F1": share(1, 3), "IOU F1": share(2, 3)}
PART_FIGURES: Mapping[str, Figure] = {"sign": share(0, 1), "rank": _correlation}
PAIR_FIGURES: Mapping[str, Figure] = {f"top {k}": share(i, len(TOP)) for i, k in reversed(list(enumerate(TOP)))}


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The documents themselves, then resamples of them: the same for all methods."""

    weights: Float64[np.ndarray, "samples_plus_1 documents"]

    @classmethod
    def of(cls, documents: int, seed: int) -> "Bootstrap":
        counts = np.random.default_rng(seed).multinomial(documents, np.full(documents, 1 / documents), size=BOOTSTRAPS)
        return cls(np.concatenate([np.ones((1, documents)), counts]))

    def mean(self, figure: Figure, sums: Sums, less: Sums | None = None) -> Mean:
        """A figure with its 95 % interval; or its difference from the figure of other sums."""
        drawn = figure(self.weights @ sums)
        if less is not None:
            drawn = drawn - figure(self.weights @ less)
        low, high = np.quantile(drawn[1:], [LEVEL / 2, 1 - LEVEL / 2])
        return Mean(float(drawn[0]), float(low), float(high))


def average_precision(scores: Float[np.ndarray, " n"], marked: Bool[np.ndarray, " n"]) -> float:
    """The mean precision over the marked items, best scores first; items of one score are one step."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, True)  # of each group of equal scores
    found = np.cumsum(marked[order])[last]
    seen = np.flatnonzero(last) + 1
    return float((np.diff(found, prepend=0) * found / seen).sum() / marked.sum())


def best(scores: Float[np.ndarray, " n"], count: int) -> Bool[np.ndarray, " n"]:
    """The items of the `count` largest scores; the earlier one wins a tie."""
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(-scores, kind="stable")[:count]] = True
    return chosen


def f1(precision: float, recall: float) -> float:
    """Their harmonic mean; 0 where both are 0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def iou_f1(predicted: Bool[np.ndarray, " tokens"], marked: Bool[np.ndarray, " tokens"]) -> float:
    """F1 of spans (runs of true), where a match is an overlap of half of the union or more."""
    ours, theirs = _runs(predicted), _runs(marked)
    overlap = np.minimum(ours[:, None, 1], theirs[None, :, 1]) - np.maximum(ours[:, None, 0], theirs[None, :, 0])
    overlap = np.maximum(overlap, 0)
    union = np.diff(ours)[:, :1] + np.diff(theirs)[:, 0][None] - overlap
    match = overlap / np.maximum(union, 1) >= 0.5
    return f1(float(match.any(axis=1).mean()), float(match.any(axis=0).mean()))


def _runs(marked: Bool[np.ndarray, " n"]) -> Int64[np.ndarray, "runs 2"]:
    """[start, end) of each run of true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return edges.reshape(-1, 2)


def token_sums(
    scores: Float64[np.ndarray, " tokens"], marked: Bool[np.ndarray, " tokens"], rate: float
) -> Float64[np.ndarray, " 4"]:
    """Of one document, for `TOKEN_FIGURES`."""
    chosen = best(scores, max(round(rate * len(scores)), 1))
    by_tokens = f1(float(marked[chosen].mean()), float(chosen[marked].mean()))
    return np.array([average_precision(scores, marked), by_tokens, iou_f1(chosen, marked), 1.0])


def part_sums(
    scores: Float64[np.ndarray, " parts"],
    ratings: Int64[np.ndarray, " parts"],
    document: Int64[np.ndarray, " parts"],
    documents: int,
) -> Sums:
    """Of all documents, for `PART_FIGURES`; ranks are those among all parts."""
    clear = ratings != 0
    x, y = rankdata(scores) / len(scores), rankdata(ratings) / len(ratings)
    columns = [clear & (np.sign(scores) == np.sign(ratings)), clear, np.ones_like(x), x, y, x * x, y * y, x * y]
    return np.stack([np.bincount(document, column, minlength=documents) for column in columns], axis=1)


def taken_words(before: list[str], after: list[str]) -> Bool[np.ndarray, " before"]:
    """The words of a text that an edit takes away or replaces."""
    taken = np.zeros(len(before), dtype=bool)
    for kind, first, last, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind in ("replace", "delete"):
            taken[first:last] = True
    return taken


def pair_sums(scores: Float64[np.ndarray, " units"], edited: Bool[np.ndarray, " units"]) -> Float64[np.ndarray, " k"]:
    """Of one pair, for `PAIR_FIGURES`."""
    return np.array([*(float((best(scores, k) & edited).any()) for k in TOP), 1.0])
