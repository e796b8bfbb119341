"""From probabilities to labels: thresholds, abstaining, and sets of labels that hold the true one with a stated chance.

Sets are split conformal prediction (Vovk et al.; the `lac` score of Sadinle, Lei and Wasserman 2019, as in MAPIE). On n
labelled documents that the model has not learned from, let s_i = 1 - p(true label of i). With k = ceil((n + 1) c), the
set of a new document has every label whose 1 - p is at most the k-th smallest s. If new documents are drawn like these
n, the true label is in the set with a chance of at least c. The likeliest label is always in it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.shapes import Bool, Float, Int64

THRESHOLD = 0.5  # of a label among several
MOST_SCORES = 1000  # that are kept; of more documents, every n-th
DIGITS = 1e6  # scores are rounded up to six digits
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # of confidence, in the table of `abstentions`

Labels = str | tuple[str, ...]
Shares = Float[np.ndarray, "documents classes"]


@dataclass(frozen=True)
class Decision:
    """How probabilities become labels: of one label per document, the likeliest class; of several, all classes above
    their thresholds. `decision` makes one that is checked."""

    classes: tuple[str, ...]
    multi_label: bool
    min_confidence: float = 0.0  # one label: below it there is none
    thresholds: tuple[float, ...] = ()  # of each class; empty: THRESHOLD

    def labels(self, shares: Shares) -> list[Labels | None]:
        """The label of each document, None where it abstains; or all its labels."""
        if self.multi_label:
            above = shares > np.array(self.thresholds or THRESHOLD)
            return [tuple(self.classes[c] for c in np.flatnonzero(row).tolist()) for row in above]
        chosen = self.guesses(shares)
        sure = shares[np.arange(len(shares)), chosen] >= self.min_confidence
        return [self.classes[c] if is_sure else None for c, is_sure in zip(chosen.tolist(), sure.tolist(), strict=True)]

    def guesses(self, shares: Shares) -> Int64[np.ndarray, " documents"]:
        """The class of each document, sure or not: the likeliest, or for two classes with a threshold the one whose
        probability is furthest above its own."""
        chosen: np.ndarray = (shares - np.array(self.thresholds or 0.0)).argmax(axis=1)
        return chosen


def decision(
    classes: Sequence[str],
    *,
    multi_label: bool,
    min_confidence: float | None = None,
    threshold: float | Mapping[str, float] | None = None,
) -> Decision:
    """Checked rules. `threshold` is for all labels of a document with several, or by label; of two classes, it names
    one: that class is predicted where its probability is above, else the other.

    Raises:
        ConfigError: a number is not between 0 and 1, a label is unknown, or the rule does not fit the labels.
    """
    classes = tuple(classes)
    if min_confidence is not None:
        _check_share("min-confidence", min_confidence)
        if multi_label:
            raise ConfigError(
                "min-confidence is for one label per document, and this run gives several; use a threshold instead"
            )
        if threshold is not None:
            raise ConfigError("min-confidence and threshold were both given; give one of them")
    if threshold is None:
        return Decision(classes, multi_label, min_confidence or 0.0)
    named = dict(threshold) if isinstance(threshold, Mapping) else dict.fromkeys(classes, threshold)
    for name, value in named.items():
        _check_share("threshold", value)
        if name not in classes:
            raise ConfigError(f"the threshold names {name!r}, which is not a label; the labels are {_listed(classes)}")
    if multi_label:
        return Decision(classes, True, thresholds=tuple(named.get(name, THRESHOLD) for name in classes))
    if len(classes) != 2:
        raise ConfigError(
            f"a threshold is for several labels per document or for two classes, and this run has {len(classes)}; "
            "use min-confidence to leave out what is not sure"
        )
    if not isinstance(threshold, Mapping) or len(named) != 1:
        raise ConfigError(f"say which class the threshold is for, as {classes[-1]}=0.8")
    ((name, value),) = named.items()
    return Decision(classes, False, thresholds=tuple(value if name == one else 1 - value for one in classes))


@dataclass(frozen=True)
class Conformal:
    """What sets of labels are made with: scores 1 - p(true label) of documents that were not learned from, sorted. Of
    many documents, every n-th, so that a set can only be larger than it had to be."""

    documents: int
    scores: tuple[float, ...]

    @classmethod
    def fitted(cls, shares: Shares, labels: Int64[np.ndarray, " documents"]) -> "Conformal":
        """From probabilities and true labels."""
        scores = np.sort(1 - shares[np.arange(len(labels)), labels].astype(np.float64))
        kept = scores[_ranks(len(scores)) - 1]
        return cls(len(scores), tuple((np.ceil(np.clip(kept, 0, 1) * DIGITS) / DIGITS).tolist()))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Conformal":
        """Of `to_dict`; a ValueError for what is none."""
        read = cls(int(values["documents"]), tuple(map(float, values["scores"])))
        if len(read.scores) != len(_ranks(read.documents)) or not all(0 <= score <= 1 for score in read.scores):
            raise ValueError("conformal scores")
        return read

    def to_dict(self) -> dict[str, Any]:
        return {"documents": self.documents, "scores": list(self.scores)}

    def sets(self, shares: Shares, coverage: float) -> Bool[np.ndarray, "documents classes"]:
        """Which labels are in the set of each document.

        Raises:
            ConfigError: there were too few documents for this coverage.
        """
        _check_share("coverage", coverage)
        rank = math.ceil((self.documents + 1) * coverage - 1e-9)
        if rank > self.documents:
            needed = math.ceil(coverage / (1 - coverage) - 1e-9)
            raise ConfigError(
                f"a coverage of {coverage:g} takes {needed:,} labelled documents, and this run was calibrated on "
                f"{self.documents:,}; give a lower coverage, or more documents to `emhrnn calibrate`"
            )
        largest = self.scores[int(np.searchsorted(_ranks(self.documents), rank))]
        inside: np.ndarray = 1 - shares <= largest + 0.5 / DIGITS  # float32 has as many digits
        inside[np.arange(len(shares)), shares.argmax(axis=1)] = True
        return inside


def _ranks(documents: int) -> Int64[np.ndarray, " kept"]:
    """Ranks, from 1, of the scores that are kept: the last one is the largest."""
    kept = min(documents, MOST_SCORES)
    return np.ceil(np.arange(1, kept + 1) * documents / max(kept, 1)).astype(np.int64)


@dataclass(frozen=True)
class Abstention:
    """Of labelled documents: the share whose confidence reaches a limit, and how many of these are right."""

    confidence: float
    coverage: float
    accuracy: float | None  # None where no document reaches it


def abstentions(shares: Shares, labels: Int64[np.ndarray, " documents"]) -> list[Abstention]:
    """For each of LEVELS: what abstaining below it would give."""
    confidence, right = shares.max(axis=1), shares.argmax(axis=1) == labels
    kept = [confidence >= level for level in LEVELS]
    return [
        Abstention(level, float(rows.mean()), float(right[rows].mean()) if rows.any() else None)
        for level, rows in zip(LEVELS, kept, strict=True)
    ]


def _check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ConfigError(f"{name} is {value:g}; give a number between 0 and 1")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
