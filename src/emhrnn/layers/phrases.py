"""Candidate phrases of ragged sentences, and which of them are in a table of seen phrases.

    candidate (t, k - 1)   the phrase of k words that ends at word t; arrays of candidates are (words, K)
    key                    60 bits from the word ids of a phrase, last word first, and 3 bits: how many words, less one;
                           two phrases with one key are taken for one, which happens to one pair in 10^18
    row                    place of a phrase's key in the sorted keys of the seen phrases
    repeats                how often the candidate's phrase is in its document

A candidate that would begin before its sentence, or that holds an unknown word, has no key: NONE. A phrase is found
only if every phrase that it ends with is found, too; whoever chooses the seen phrases by how many documents have them
keeps that rule, because a part is in no fewer documents than the whole.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emhrnn.cores import threads
from emhrnn.corpus.batch import Batch
from emhrnn.layers.native import kernels
from emhrnn.shapes import Bool, Float32, Int32, Int64

NONE = -1
MOST_WORDS = 8  # of a phrase: the last three bits of its key are their number, less one
UNKNOWN_WORD = 0
MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
MOST_BITS = 24  # of a key that find its place: 64 MB of places

Candidates = Int64[np.ndarray, "words K"]


def phrase_keys(batch: Batch, longest: int) -> Candidates:
    """The key of every candidate, NONE where it has none. Raises a ValueError unless 1 <= longest <= MOST_WORDS."""
    _check_longest(longest)
    if native := kernels():
        keys = np.empty((batch.n_words, longest), dtype=np.int64)
        native.call("phrase_keys", *_sentences(batch), longest, keys, threads())
        return keys
    words = batch.words.astype(np.uint64)
    position = np.arange(batch.n_words) - batch.sentence_offsets[batch.sentence_of_word]
    result = np.full((batch.n_words, longest), NONE, dtype=np.int64)
    state, possible = np.zeros(batch.n_words, dtype=np.uint64), np.ones(batch.n_words, dtype=bool)
    for k in range(longest):
        word = np.roll(words, k)
        possible &= (position >= k) & (word != UNKNOWN_WORD)
        state = (state ^ word) * MIX[0]
        state = (state ^ (state >> np.uint64(32))) * MIX[1]
        state ^= state >> np.uint64(32)
        result[possible, k] = (state[possible] >> np.uint64(1)).astype(np.int64) & ~(MOST_WORDS - 1) | k
    return result


@dataclass(frozen=True, eq=False)
class PhraseIndex:
    """Finds phrases in keys, which must rise strictly from 0 or more: a ValueError, when they are first used."""

    keys: Int64[np.ndarray, " rows"]

    @cached_property
    def _checked_keys(self) -> Int64[np.ndarray, " rows"]:
        if len(self.keys) and (self.keys[0] < 0 or (self.keys[1:] <= self.keys[:-1]).any()):
            raise ValueError("keys of seen phrases must be sorted, each once, none below 0: give np.unique of them")
        return np.ascontiguousarray(self.keys)

    @cached_property
    def _bits(self) -> int:
        return min(max(len(self.keys), 1).bit_length(), MOST_BITS)

    @cached_property
    def _starts(self) -> Int32[np.ndarray, " places_plus_1"]:
        """Keys whose first bits are b are at starts[b] .. starts[b + 1] - 1."""
        counts = np.bincount(self._checked_keys >> (63 - self._bits), minlength=1 << self._bits)
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    @property
    def places(self) -> tuple[int, Int64[np.ndarray, " rows"], Int32[np.ndarray, " places_plus_1"], int]:
        """How native/phrases.h finds a key: their number, keys, starts and bits."""
        return len(self.keys), self._checked_keys, self._starts, self._bits

    def rows(self, batch: Batch, longest: int) -> Candidates:
        """The row of every candidate, NONE where it is not there. Raises a ValueError as `phrase_keys` does."""
        _check_longest(longest)
        if native := kernels():
            rows = np.empty((batch.n_words, longest), dtype=np.int64)
            native.call("phrase_rows", *_sentences(batch), longest, *self.places, rows, threads())
            return rows
        keys, seen = phrase_keys(batch, longest), self._checked_keys
        if not len(seen):
            return np.full_like(keys, NONE)
        rows = np.minimum(np.searchsorted(seen, keys), len(seen) - 1)
        found = np.logical_and.accumulate(seen[rows] == keys, axis=1)
        return np.where(found, rows, NONE)


def repeats(batch: Batch, values: Candidates) -> Int32[np.ndarray, "words K"]:
    """How often each candidate's value, a key or a row, is in its document; 0 where it has none. Raises an IndexError
    for values of another number of words."""
    return _repeats(batch, values, first=False)[0]


def presence_weights(batch: Batch, rows: Candidates, presence: float) -> Float32[np.ndarray, "words K"]:
    """repeats^-presence of every candidate with a row, else 0: with a presence of 1, a phrase counts once a document;
    with 0, as often as it occurs. Raises an IndexError for rows of another number of words."""
    _check_words(batch, rows)
    if not presence:
        once: np.ndarray = (rows != NONE).astype(np.float32)
        return once
    if native := kernels():
        weights = np.empty(rows.shape, dtype=np.float32)
        native.call(
            "phrase_weights", batch.n_documents, batch.word_offsets, rows.shape[1], np.ascontiguousarray(rows),
            np.array([presence], dtype=np.float32), weights, threads(),
        )  # fmt: skip
        return weights
    times = np.maximum(repeats(batch, rows), 1).astype(np.float32)
    result: np.ndarray = (rows != NONE) * times ** np.float32(-presence)
    return result


def distinct_words(
    words: Int64[np.ndarray, " words"],
) -> tuple[Int64[np.ndarray, " distinct"], Int64[np.ndarray, " words"]]:
    """The distinct words, and the place of each word among them. They are not sorted."""
    if native := kernels():
        distinct, places, count = np.empty_like(words), np.empty_like(words), np.empty(1, dtype=np.int64)
        native.call("distinct_words", len(words), np.ascontiguousarray(words), distinct, places, count)
        return distinct[: int(count[0])], places
    return np.unique(words, return_inverse=True)


def first_in_document(batch: Batch, values: Candidates) -> Bool[np.ndarray, "words K"]:
    """True where a candidate has a value, and no earlier one of its document has the same. Raises an IndexError for
    values of another number of words."""
    first = _repeats(batch, values, first=True)[1]
    assert first is not None
    return first


def _repeats(
    batch: Batch, values: Candidates, *, first: bool
) -> tuple[Int32[np.ndarray, "words K"], Bool[np.ndarray, "words K"] | None]:
    _check_words(batch, values)
    if native := kernels():
        counts = np.empty(values.shape, dtype=np.int32)
        flags = np.empty(values.shape, dtype=bool) if first else None
        native.call(
            "phrase_repeats", batch.n_documents, batch.word_offsets, values.shape[1], np.ascontiguousarray(values),
            counts, flags, threads(),
        )  # fmt: skip
        return counts, flags
    flat = values.reshape(-1)
    document = np.repeat(np.arange(batch.n_documents), batch.document_lengths * values.shape[1])
    order = np.lexsort((np.arange(len(flat)), flat, document))
    new = np.ones(len(flat), dtype=bool)  # of runs of one value in one document
    new[1:] = (np.diff(flat[order]) != 0) | (np.diff(document[order]) != 0)
    run = np.cumsum(new) - 1
    times, earliest = np.zeros(len(flat), dtype=np.int32), np.zeros(len(flat), dtype=bool)
    times[order], earliest[order] = np.bincount(run)[run], new
    times[flat == NONE], earliest[flat == NONE] = 0, False
    return times.reshape(values.shape), earliest.reshape(values.shape)


def _check_words(batch: Batch, values: np.ndarray) -> None:
    if len(values) != batch.n_words:
        raise IndexError(f"values of {len(values)} words for a batch of {batch.n_words}")


def _check_longest(longest: int) -> None:
    if not 1 <= longest <= MOST_WORDS:
        raise ValueError(f"phrases of at most {longest} words; keys have room for 1 to {MOST_WORDS}")


def _sentences(batch: Batch) -> tuple[int, np.ndarray, np.ndarray]:
    return batch.n_sentences, np.ascontiguousarray(batch.sentence_offsets), np.ascontiguousarray(batch.words)
