"""Attention weights of words beside chance, and the most important word of a document.

A softmax over n items gives each 1 / n by chance. EM-HRNN's runs over the words of a phrase (about four), MHS-RNN's
over all words and phrases of a sentence (about twenty), so their weights can only be compared after a division by
chance.
"""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.scores import PhraseLengths, count_phrase_lengths
from emhrnn.paper.explanations.attention import Levels
from emhrnn.shapes import Float, Float64, Int64
from emhrnn.text import Vocabulary


@dataclass(frozen=True, eq=False)
class WordWeights:
    """The weight of each word in the softmax that it is in, and how many items share that softmax."""

    weight: Float64[np.ndarray, " words"]
    siblings: Int64[np.ndarray, " words"]
    in_sentence: Float64[np.ndarray, " words"]  # its share of the sentence, through its phrase, times the words of it

    @property
    def chance(self) -> Float64[np.ndarray, " words"]:
        chance: Float64[np.ndarray, " words"] = 1 / self.siblings
        return chance

    @property
    def lift(self) -> Float64[np.ndarray, " words"]:
        """Weight divided by chance: 1 where attention is indifferent."""
        lift: Float64[np.ndarray, " words"] = self.weight * self.siblings
        return lift


def word_weights(levels: Levels, batch: Batch) -> WordWeights:
    """The weights of all words of a batch."""
    offsets = np.concatenate([[0], np.flatnonzero(levels.z) + 1])  # (phrases + 1,)
    lengths = np.diff(offsets)
    sentence_lengths = batch.sentence_lengths[batch.sentence_of_word]  # (words,)
    if levels.direct is None:
        weight, siblings = levels.alpha, np.repeat(lengths, lengths)
    else:
        phrases = np.bincount(batch.sentence_of_word[levels.z], minlength=batch.n_sentences)
        weight, siblings = levels.direct, sentence_lengths + phrases[batch.sentence_of_word]
    share = levels.alpha.astype(np.float64) * np.repeat(levels.beta, lengths)
    return WordWeights(weight.astype(np.float64), siblings, share * sentence_lengths)


def important_words(levels: Levels, batch: Batch) -> Int64[np.ndarray, " documents"]:
    """The word of each document, by its number in the batch, that the paper's descent ends at: the heaviest sentence,
    its heaviest phrase, that phrase's heaviest word; where words and phrases share a softmax (MHS-RNN), the heaviest
    sentence, its heaviest word. The first wins a tie."""
    sentences = _heaviest(levels.gamma, batch.document_offsets)  # (documents,)
    by_sentence: Int64[np.ndarray, " sentences"]
    if levels.direct is not None:
        by_sentence = _heaviest(levels.direct, batch.sentence_offsets)
    else:
        phrase_offsets = np.concatenate([[0], np.flatnonzero(levels.z) + 1])
        phrases = _heaviest(levels.beta, np.searchsorted(phrase_offsets, batch.sentence_offsets))  # (sentences,)
        by_sentence = _heaviest(levels.alpha, phrase_offsets)[phrases]
    by_document: Int64[np.ndarray, " documents"] = by_sentence[sentences]
    return by_document


def _heaviest(
    weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"]
) -> Int64[np.ndarray, " segments"]:
    """Where the largest weight of each segment stands."""
    lengths = np.diff(offsets)
    largest = np.repeat(np.maximum.reduceat(weights, offsets[:-1]), lengths)
    places = np.flatnonzero(weights == largest)  # at least one in each segment
    _, first = np.unique(np.repeat(np.arange(len(lengths)), lengths)[places], return_index=True)
    return places[first]


MEANS = ("weight", "chance", "lift", "in_sentence", "alone")


@dataclass(frozen=True)
class WordAttention:
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

    def attention(self, word: str) -> WordAttention:
        row = self.vocabulary.id_of(word) if word in self.vocabulary else None
        if row is None or not self.count[row]:
            return WordAttention(word, 0)
        means = self.sums[:, row] / self.count[row]
        return WordAttention(word, int(self.count[row]), **dict(zip(MEANS, means.tolist(), strict=True)))

    def average(self) -> WordAttention:
        """Of all words together."""
        means = self.sums.sum(axis=1) / self.words
        return WordAttention("(all words)", self.words, **dict(zip(MEANS, means.tolist(), strict=True)))
