"""Sums over all documents of what a model does with each word of its vocabulary."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.phrases import PhraseLengths, count_phrase_lengths
from emhrnn.explain.attention import Levels
from emhrnn.paper.analysis.weights import important_words, word_weights
from emhrnn.text import Vocabulary

MEANS = ("weight", "chance", "lift", "in_sentence", "alone")


@dataclass(frozen=True)
class Attention:
    """Means over the occurrences of a word; None where it does not occur."""

    word: str
    count: int
    weight: float | None = None  # in the softmax that it is in
    chance: float | None = None  # 1 / number of items in that softmax
    lift: float | None = None  # mean of weight / chance
    in_sentence: float | None = None  # mean of its share of the sentence / (1 / words of the sentence)
    alone: float | None = None  # share of occurrences with a softmax to themselves, where the weight can only be 1

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Tally:
    """Of one model, filled batch by batch."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.documents = 0
        self.words = 0
        self.count: Int64[np.ndarray, " vocabulary"] = np.zeros(len(vocabulary), dtype=np.int64)
        self.sums: Float64[np.ndarray, "means vocabulary"] = np.zeros((len(MEANS), len(vocabulary)))
        self.lengths: Counter[int] = Counter()  # of phrases

    def add(self, batch: Batch, levels: Levels) -> Int64[np.ndarray, " documents"]:
        """The most important word of each document, by its number in the batch."""
        weights, size = word_weights(levels, batch), len(self.vocabulary)
        alone = (weights.siblings == 1).astype(np.float64)
        columns = (weights.weight, weights.chance, weights.lift, weights.in_sentence, alone)
        self.count += np.bincount(batch.words, minlength=size)
        for sums, column in zip(self.sums, columns, strict=True):
            sums += np.bincount(batch.words, column, size)
        lengths = count_phrase_lengths(levels.z)
        self.lengths.update({int(k): int(lengths[k]) for k in np.flatnonzero(lengths)})
        self.documents += batch.n_documents
        self.words += batch.n_words
        return important_words(levels, batch)

    def phrase_lengths(self) -> PhraseLengths:
        histogram = np.zeros(max(self.lengths) + 1, dtype=np.int64)
        for length, count in self.lengths.items():
            histogram[length] = count
        return PhraseLengths.of(histogram)

    def attention(self, word: str) -> Attention:
        row = self.vocabulary.id_of(word) if word in self.vocabulary else None
        if row is None or not self.count[row]:
            return Attention(word, 0)
        means = self.sums[:, row] / self.count[row]
        return Attention(word, int(self.count[row]), **dict(zip(MEANS, means.tolist(), strict=True)))

    def average(self) -> Attention:
        """Of all words together."""
        means = self.sums.sum(axis=1) / self.words
        return Attention("(all words)", self.words, **dict(zip(MEANS, means.tolist(), strict=True)))
