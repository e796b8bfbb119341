"""What a model's attention says about words: their weights beside chance, and the one word that weighs most.

A softmax over n items gives each 1 / n by chance. EM-HRNN's runs over the words of a phrase (about four), MHS-RNN's
over all words and phrases of a sentence (about twenty), so their weights can only be compared after a division by
chance.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.explain.attention import Levels


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
