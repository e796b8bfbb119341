"""A ragged batch of documents: flat words plus offsets, no padding.

    words             w w w w w w w w w w w      (words,)        word ids of all documents, one after the other
    sentence_offsets  0     3   5         10 ..  (sentences + 1) sentence i is words[offsets[i] : offsets[i + 1]]
    document_offsets  0         2          ..    (documents + 1) document d is sentences[offsets[d] : offsets[d + 1]]

Every document has at least one sentence and every sentence at least one word; `Batch` refuses anything else, so that
no layer has to think of empty segments.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float32, Int64

from emhrnn.corpus.ragged import offsets_of, ranges
from emhrnn.errors import DataError


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents as word ids. `rows` are the documents' row numbers in their corpus; `labels` is (documents,) class
    ids or, for multi-label data, (documents, classes) of 0 and 1; ids of users and products are -1 where unknown;
    a document of weight 2 counts in training as if it were there twice, without weights all count 1."""

    words: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]
    rows: Int64[np.ndarray, " documents"]
    labels: Int64[np.ndarray, " documents"] | Float32[np.ndarray, "documents classes"] | None = None
    users: Int64[np.ndarray, " documents"] | None = None
    products: Int64[np.ndarray, " documents"] | None = None
    weights: Float32[np.ndarray, " documents"] | None = None

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
    def sentence_final(self) -> Bool[np.ndarray, " words"]:
        """True at the last word of each sentence: the forced boundaries E, where z = 1 is observed."""
        final = np.zeros(self.n_words, dtype=bool)
        final[self.sentence_offsets[1:] - 1] = True
        return final

    def batch(self, rows: Int64[np.ndarray, " some"]) -> "Batch":
        """Some documents, in the order given, as of a `Corpus`; `rows` count the documents of this batch."""
        counts, starts = np.diff(self.document_offsets)[rows], self.document_offsets[rows]
        labels, users, products, weights = (
            None if values is None else values[rows]
            for values in (self.labels, self.users, self.products, self.weights)
        )
        return Batch(
            words=self.words[ranges(self.word_offsets[rows], self.document_lengths[rows])],
            sentence_offsets=offsets_of(self.sentence_lengths[ranges(starts, counts)]),
            document_offsets=offsets_of(counts),
            rows=rows,
            labels=labels,
            users=users,
            products=products,
            weights=weights,
        )

    def part(self, begin: int, end: int) -> "Batch":
        """The documents from `begin` to before `end`."""
        first, last = self.document_offsets[[begin, end]]
        labels, users, products, weights = (
            None if values is None else values[begin:end]
            for values in (self.labels, self.users, self.products, self.weights)
        )
        return Batch(
            words=self.words[self.sentence_offsets[first] : self.sentence_offsets[last]],
            sentence_offsets=self.sentence_offsets[first : last + 1] - self.sentence_offsets[first],
            document_offsets=self.document_offsets[begin : end + 1] - first,
            rows=self.rows[begin:end],
            labels=labels,
            users=users,
            products=products,
            weights=weights,
        )

    def repeated(self, times: int) -> "Batch":
        """All the documents again and again, one copy after the other."""
        labels, users, products, weights = (
            None if values is None else np.concatenate([values] * times)
            for values in (self.labels, self.users, self.products, self.weights)
        )
        return Batch(
            words=np.tile(self.words, times),
            sentence_offsets=offsets_of(np.tile(self.sentence_lengths, times)),
            document_offsets=offsets_of(np.tile(np.diff(self.document_offsets), times)),
            rows=np.tile(self.rows, times),
            labels=labels,
            users=users,
            products=products,
            weights=weights,
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
