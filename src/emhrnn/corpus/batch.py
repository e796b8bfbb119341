"""A ragged batch of documents: flat words plus offsets, no padding.

    words             w w w w w w w w w w w      (words,)        word ids of all documents, one after the other
    sentence_offsets  0     3   5         10 ..  (sentences + 1) sentence i is words[offsets[i] : offsets[i + 1]]
    document_offsets  0         2          ..    (documents + 1) document d is sentences[offsets[d] : offsets[d + 1]]

Every document has at least one sentence and every sentence at least one word; `Batch` refuses anything else, so that
no layer has to think of empty segments.

`BatchPlan` says which documents of a corpus go into which batch: those of similar length, in a new order each epoch.
Rows are shuffled and cut into pools of some dozens of batches; a pool is sorted by length and cut into batches; the
batches are shuffled. So a batch wastes little on length differences, and yet no two epochs have the same batches.

    plan = BatchPlan(corpus.lengths, words=8000)
    for rows in plan.batches(generator): ...       # an epoch; the same batches for a generator in the same state
    for rows in plan.in_order(): ...               # without chance, for what does not learn by steps
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from emhrnn.errors import ConfigError, DataError
from emhrnn.shapes import Bool, Float32, Int64, Integer, UInt64
from emhrnn.text.encoder import offsets_of as offsets_of

HASH_WORD, HASH_BASE = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # odd, with well mixed bits


def ranges(starts: Int64[np.ndarray, " n"], lengths: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " total"]:
    """start, start + 1, ... of every part, one part after the other."""
    offsets = offsets_of(lengths)
    index = np.arange(offsets[-1])
    index += np.repeat(starts - offsets[:-1], lengths)
    return index


def offsets_within(
    offsets: Int64[np.ndarray, " n_plus_1"], parents: Int64[np.ndarray, " parents_plus_1"]
) -> list[Int64[np.ndarray, " _"]]:
    """Of each parent, offsets[parents[i] : parents[i + 1] + 1], beginning with 0: views of one array."""
    counts = np.diff(parents) + 1
    values = offsets[ranges(parents[:-1], counts)] - np.repeat(offsets[parents[:-1]], counts)
    return [values[first:last] for first, last in pairwise(offsets_of(counts).tolist())]


def fingerprints(words: Integer[np.ndarray, " words"], lengths: Int64[np.ndarray, " n"]) -> UInt64[np.ndarray, " n"]:
    """A hash of each part: sum over places t of hash(word_t) * HASH_BASE^t, modulo 2^64."""
    hashes = (words.astype(np.uint64) + np.uint64(1)) * HASH_WORD
    hashes ^= hashes >> np.uint64(29)
    powers = np.full(lengths.max(), HASH_BASE)
    np.multiply.accumulate(powers, out=powers)
    hashes *= powers[ranges(np.zeros_like(lengths), lengths)]
    return np.add.reduceat(hashes, offsets_of(lengths)[:-1])


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents as word ids. `rows` are the documents' row numbers in their corpus; `labels` is (documents,) class
    ids or, for multi-label data, (documents, classes) of 0 and 1; ids of users and products are -1 where unknown;
    a document of weight 2 counts in training as if it were there twice, without weights all count 1. `marked` are the
    words that people marked as reasons for the label, in some documents."""

    words: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]
    rows: Int64[np.ndarray, " documents"]
    labels: Int64[np.ndarray, " documents"] | Float32[np.ndarray, "documents classes"] | None = None
    users: Int64[np.ndarray, " documents"] | None = None
    products: Int64[np.ndarray, " documents"] | None = None
    weights: Float32[np.ndarray, " documents"] | None = None
    marked: Bool[np.ndarray, " words"] | None = None

    def __post_init__(self) -> None:
        for name, offsets, total in (
            ("sentence_offsets", self.sentence_offsets, len(self.words)),
            ("document_offsets", self.document_offsets, len(self.sentence_offsets) - 1),
        ):
            if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 1).any():
                raise DataError(f"{name} must rise strictly from 0 to {total}; give every document at least one word")

    def __len__(self) -> int:
        return self.n_documents

    @property
    def n_documents(self) -> int:
        return len(self.document_offsets) - 1

    @property
    def n_sentences(self) -> int:
        return len(self.sentence_offsets) - 1

    @property
    def n_words(self) -> int:
        return len(self.words)

    @cached_property
    def sentence_lengths(self) -> Int64[np.ndarray, " sentences"]:
        """Words of each sentence."""
        return np.diff(self.sentence_offsets)

    @cached_property
    def document_lengths(self) -> Int64[np.ndarray, " documents"]:
        """Words of each document."""
        return np.diff(self.word_offsets)

    @property
    def lengths(self) -> Int64[np.ndarray, " documents"]:
        """Words of each document, by the name that a `Corpus` has for them."""
        return self.document_lengths

    @cached_property
    def word_offsets(self) -> Int64[np.ndarray, " documents_plus_1"]:
        """Document d is words[word_offsets[d] : word_offsets[d + 1]]."""
        offsets: np.ndarray = self.sentence_offsets[self.document_offsets]
        return offsets

    @cached_property
    def sentence_of_word(self) -> Int64[np.ndarray, " words"]:
        return np.repeat(np.arange(self.n_sentences), self.sentence_lengths)

    @cached_property
    def document_of_sentence(self) -> Int64[np.ndarray, " sentences"]:
        return np.repeat(np.arange(self.n_documents), np.diff(self.document_offsets))

    @cached_property
    def document_of_word(self) -> Int64[np.ndarray, " words"]:
        return np.repeat(np.arange(self.n_documents), self.document_lengths)

    @cached_property
    def sentence_final(self) -> Bool[np.ndarray, " words"]:
        """True at the last word of each sentence: the forced boundaries E, where z = 1 is observed."""
        final = np.zeros(self.n_words, dtype=bool)
        final[self.sentence_offsets[1:] - 1] = True
        return final

    def batch(self, rows: Int64[np.ndarray, " some"]) -> "Batch":
        """Some documents, in the order given, as of a `Corpus`; `rows` count the documents of this batch."""
        return replace(self._taken(rows), rows=rows)

    def part(self, begin: int, end: int) -> "Batch":
        """The documents from `begin` to before `end`."""
        return self._taken(np.arange(begin, end))

    def repeated(self, times: int) -> "Batch":
        """All the documents again and again, one copy after the other."""
        return self._taken(np.tile(np.arange(len(self)), times))

    def _taken(self, rows: Int64[np.ndarray, " some"]) -> "Batch":
        counts, starts = np.diff(self.document_offsets)[rows], self.document_offsets[rows]
        labels, users, products, weights = (
            None if values is None else values[rows]
            for values in (self.labels, self.users, self.products, self.weights)
        )
        words = ranges(self.word_offsets[rows], self.document_lengths[rows])
        return Batch(
            words=self.words[words],
            sentence_offsets=offsets_of(self.sentence_lengths[ranges(starts, counts)]),
            document_offsets=offsets_of(counts),
            rows=self.rows[rows],
            labels=labels,
            users=users,
            products=products,
            weights=weights,
            marked=None if self.marked is None else self.marked[words],
        )

    def only(self, keep: Bool[np.ndarray, " words"]) -> "Batch | None":
        """The words to keep, in the documents that have some; None where no document has."""
        lengths = np.bincount(self.sentence_of_word, weights=keep, minlength=self.n_sentences).astype(np.int64)
        counts = np.bincount(self.document_of_sentence, weights=lengths > 0, minlength=self.n_documents)
        rows = np.flatnonzero(counts)
        if not len(rows):
            return None
        return replace(
            self._taken(rows),
            words=self.words[keep],
            sentence_offsets=offsets_of(lengths[lengths > 0]),
            document_offsets=offsets_of(counts[rows].astype(np.int64)),
            marked=None,
        )

    @classmethod
    def from_lists(
        cls,
        documents: list[list[list[int]]],
        labels: list[int] | None = None,
    ) -> "Batch":
        """From nested lists: documents of sentences of word ids. For small inputs and tests."""
        sentences = [sentence for document in documents for sentence in document]
        return cls(
            words=np.array([word for sentence in sentences for word in sentence], dtype=np.int64),
            sentence_offsets=np.cumsum([0, *map(len, sentences)], dtype=np.int64),
            document_offsets=np.cumsum([0, *map(len, documents)], dtype=np.int64),
            rows=np.arange(len(documents), dtype=np.int64),
            labels=None if labels is None else np.array(labels, dtype=np.int64),
        )


DEFAULT_WORDS = 8000
POOL_BATCHES = 50


class BatchPlan:
    """Every row exactly once per epoch, either `documents` rows a batch (the paper: 64) or about `words` words.

    A batch by words never exceeds its budget, except that a document larger than the budget is a batch of its own.
    """

    def __init__(
        self,
        lengths: Int64[np.ndarray, " rows"],
        *,
        documents: int | None = None,
        words: int | None = None,
    ) -> None:
        if documents is not None and words is not None:
            raise ConfigError("batches are cut by documents or by words, both were given; give one of them")
        for name, size in (("documents", documents), ("words", words)):
            if size is not None and size < 1:
                raise ConfigError(f"a batch of {size} {name} is not possible; give 1 or more")
        self.lengths = lengths
        self.documents = documents
        self.words = (words or DEFAULT_WORDS) if documents is None else None

    def batches(self, generator: np.random.Generator) -> list[Int64[np.ndarray, " documents"]]:
        """All rows once, in batches, in an order drawn from the generator."""
        order = generator.permutation(len(self.lengths))
        expected = len(order) / self.documents if self.documents else float(self.lengths.sum()) / (self.words or 1)
        pools = np.array_split(order, max(1, round(expected / POOL_BATCHES)))
        batches = [batch for pool in pools for batch in self._cut(pool)]
        return [batches[i] for i in generator.permutation(len(batches))]

    def in_order(self) -> list[Int64[np.ndarray, " documents"]]:
        """All rows once, sorted by length, without chance: for evaluation, where the order does not matter."""
        return self._cut(np.arange(len(self.lengths)))

    def _cut(self, rows: Int64[np.ndarray, " rows"]) -> list[Int64[np.ndarray, " documents"]]:
        rows = rows[np.argsort(self.lengths[rows], kind="stable")]
        if self.documents is not None:
            cuts = list(range(self.documents, len(rows), self.documents))
        else:
            cuts = self._word_cuts(rows)
        return np.split(rows, cuts) if len(rows) else []

    def _word_cuts(self, rows: Int64[np.ndarray, " rows"]) -> list[int]:
        """One step per batch: the furthest row that still fits into the budget."""
        assert self.words is not None
        ends = offsets_of(self.lengths[rows])
        cuts: list[int] = []
        first = 0
        while True:
            fits = int(np.searchsorted(ends, ends[first] + self.words, side="right")) - 1
            first = max(fits, first + 1)
            if first >= len(rows):
                return cuts
            cuts.append(first)
