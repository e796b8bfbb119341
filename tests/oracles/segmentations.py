"""All segmentations of a short sentence into phrases of at most K words, written out one by one."""

import itertools
from dataclasses import dataclass

import numpy as np


def segmentations(words: int, longest: int):
    """z, true at the last word of each phrase, of all 2^(words - 1) cuts that have no phrase over `longest` words."""
    for bits in itertools.product([False, True], repeat=words - 1):
        z = [*bits, True]
        if all(width <= longest for _, width in phrases(z)):
            yield z


def phrases(z) -> list[tuple[int, int]]:
    """(last word, width) of each phrase."""
    ends = [t for t, end in enumerate(z) if end]
    return [(end, end - before) for before, end in zip([-1, *ends[:-1]], ends, strict=True)]


@dataclass
class Enumeration:
    """One sentence and one class: every segmentation, and the sum of the scores of its phrases."""

    scores: np.ndarray  # (words, K)
    z: np.ndarray  # (segmentations, words)
    values: np.ndarray  # (segmentations)

    @classmethod
    def of(cls, scores: np.ndarray) -> "Enumeration":
        z = list(segmentations(*scores.shape))
        values = [sum(scores[t, width - 1] for t, width in phrases(cut)) for cut in z]
        return cls(scores, np.array(z), np.array(values))

    @property
    def log_partition(self) -> float:
        highest = self.values.max()
        return highest + np.log(np.exp(self.values - highest).sum()) if highest > -np.inf else -np.inf

    @property
    def probabilities(self) -> np.ndarray:
        """Of the segmentations; all 0 where none is possible."""
        if self.log_partition == -np.inf:
            return np.zeros(len(self.values))
        return np.exp(self.values - self.log_partition)

    @property
    def posterior(self) -> np.ndarray:
        """Of every phrase: (words, K)."""
        result = np.zeros(self.scores.shape)
        for cut, p in zip(self.z, self.probabilities, strict=True):
            for t, width in phrases(cut):
                result[t, width - 1] += p
        return result

    @property
    def entropy(self) -> float:
        p = self.probabilities[self.probabilities > 0]
        return float(-(p * np.log(p)).sum())

    @property
    def best_first(self) -> np.ndarray:
        """Segmentation numbers by falling value, without the impossible ones."""
        order = np.argsort(-self.values, kind="stable")
        return order[self.values[order] > -np.inf]


def enumerated(scores: np.ndarray, offsets: np.ndarray) -> list[list[Enumeration]]:
    """Of every sentence and class; scores (words, K, classes)."""
    return [
        [Enumeration.of(scores[begin:end, :, y]) for y in range(scores.shape[2])]
        for begin, end in itertools.pairwise(offsets)
    ]
