"""Segmentations that are not learned: what EM-HRNN's phrases must beat (docs/paper.md 1.2, limiting cases).

Each function gives z for a batch: true where a word ends a phrase. The last word of a sentence always does.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.shapes import Bool, Float64

Z = Bool[np.ndarray, " words"]

PAPER_RATE = 0.23  # phrases of 4.31 words on average (Table 3) end at 23 % of the words


def whole_sentences(batch: Batch) -> Z:
    """All-0: one phrase per sentence."""
    return batch.sentence_final.copy()


def single_words(batch: Batch) -> Z:
    """All-1: every word is a phrase."""
    return np.ones(batch.n_words, dtype=bool)


def every(batch: Batch, length: int) -> Z:
    """Phrases of `length` words, counted from each sentence's start."""
    position = np.arange(batch.n_words) - batch.sentence_offsets[batch.sentence_of_word]
    z: Z = (position % length == length - 1) | batch.sentence_final
    return z


def random(batch: Batch, rate: float, generator: np.random.Generator) -> Z:
    """Each word ends a phrase with probability `rate`."""
    z: Z = (generator.random(batch.n_words) < rate) | batch.sentence_final
    return z


def at_words(batch: Batch, ends_phrase: Bool[np.ndarray, " vocabulary"]) -> Z:
    """Phrases end at the words marked in the vocabulary, for example at punctuation."""
    z: Z = ends_phrase[batch.words] | batch.sentence_final
    return z


def punctuation(vocabulary: Sequence[str]) -> Bool[np.ndarray, " vocabulary"]:
    """Marks the words that are made of punctuation alone, for `at_words`."""
    mark = re.compile(r"[^\w\s]+").fullmatch
    return np.array([mark(word) is not None for word in vocabulary], dtype=bool)


def _same_for_everyone(batch: Batch) -> Float64[np.ndarray, " words"]:
    """A fixed pseudo-random number in [0, 1) for each word, from its id and that of the one before it in its
    sentence."""
    words = batch.words.astype(np.uint64) + np.uint64(1)  # products with 0 would be no random numbers
    previous = np.roll(words, 1)
    previous[batch.sentence_offsets[:-1]] = 0
    key = (words * np.uint64(0x9E3779B97F4A7C15)) ^ (previous * np.uint64(0xC2B2AE3D27D4EB4F))
    key ^= key >> np.uint64(31)
    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(27)
    return (key >> np.uint64(11)).astype(np.float64) / 2.0**53


def fixed_random(batch: Batch, rate: float) -> Z:
    """Random boundaries that depend only on the words, so that a text is always cut in the same places."""
    z: Z = (_same_for_everyone(batch) < rate) | batch.sentence_final
    return z


def check_rule(name: str) -> None:
    """Raise a ConfigError for a name that `rule` does not know."""
    rule(name, ())


def rule(name: str, vocabulary: Sequence[str], rate: float = PAPER_RATE) -> Callable[[Batch], Z]:
    """The segmentation called `name` on the command line."""
    if name == "none":
        return whole_sentences
    if name == "words":
        return single_words
    if name == "punctuation":
        marks = punctuation(vocabulary)
        return lambda batch: at_words(batch, marks)
    random_rate = re.fullmatch(r"random(-0?\.\d+)?", name)
    if random_rate:
        share = -float(random_rate[1]) if random_rate[1] else rate
        return lambda batch: fixed_random(batch, share)
    every_k = re.fullmatch(r"every-(\d+)", name)
    if every_k and int(every_k[1]) > 0:
        length = int(every_k[1])
        return lambda batch: every(batch, length)
    known = "learned, none, words, punctuation, random, random-0.5 or every-K"
    raise ConfigError(f"unknown segmentation {name!r}; use {known}")
