"""The rows of a chunk as word ids, ready to be cut into batches."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int64

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.names import NameTable
from emhrnn.corpus.ragged import offsets_of, ranges
from emhrnn.text import Encoder, split_sentences
from emhrnn.training.run import Run

Rows = Int64[np.ndarray, " rows"]


@dataclass(frozen=True, eq=False)
class Documents:
    """As `Batch`, but a document may have no words."""

    words: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]
    users: Int64[np.ndarray, " documents"] | None = None
    products: Int64[np.ndarray, " documents"] | None = None

    def __len__(self) -> int:
        return len(self.document_offsets) - 1

    @cached_property
    def lengths(self) -> Int64[np.ndarray, " documents"]:
        """Words of each document."""
        return np.diff(self.sentence_offsets[self.document_offsets])

    def take(self, rows: Rows) -> "Documents":
        """Some documents, in the order given."""
        counts, starts = np.diff(self.document_offsets)[rows], self.document_offsets[rows]
        return Documents(
            self.words[ranges(self.sentence_offsets[starts], self.lengths[rows])],
            offsets_of(np.diff(self.sentence_offsets)[ranges(starts, counts)]),
            offsets_of(counts),
            None if self.users is None else self.users[rows],
            None if self.products is None else self.products[rows],
        )

    def batch(self, rows: Rows) -> Batch:
        """Some documents, which must have words."""
        some = self.take(rows)
        return Batch(some.words, some.sentence_offsets, some.document_offsets, rows, None, some.users, some.products)


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads rows in the words of a run. Keep it: its encoder learns the common words."""

    run: Run

    @cached_property
    def _encoder(self) -> Encoder:
        text = self.run.text
        return Encoder(self.run.vocabulary, language=text.language, lowercase=text.lowercase, limits=text.limits)

    @cached_property
    def _names(self) -> dict[str, NameTable]:
        return {"user": NameTable(self.run.users), "product": NameTable(self.run.products)}

    def read(self, rows: list[dict[str, Any]]) -> Documents:
        users, products = self._numbers("user", rows), self._numbers("product", rows)
        if "words" in rows[0]:  # of a prepared corpus
            sentences = [sentence for row in rows for sentence in row["words"]]
            words = self.run.vocabulary.encode([word for sentence in sentences for word in sentence])
            lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
            counts = np.array([len(row["words"]) for row in rows], dtype=np.int64)
            return Documents(words.astype(np.int64), offsets_of(lengths), offsets_of(counts), users, products)
        encoded = self._encoder.encode_sentences(map(self._sentences, rows))
        words = encoded.words.astype(np.int64)
        return Documents(words, encoded.sentence_offsets, encoded.document_offsets, users, products)

    def _sentences(self, row: dict[str, Any]) -> list[str]:
        given: list[str] | None = row.get("sentences")
        return split_sentences(row.get("text", ""), self.run.text.language) if given is None else given

    def _numbers(self, what: str, rows: list[dict[str, Any]]) -> Int64[np.ndarray, " rows"] | None:
        """Ids of users or products, -1 for those that the run does not know; None where it knows none at all."""
        table = self._names[what]
        if not len(table):
            return None
        return np.array([table.id_of(row.get(what)) for row in rows], dtype=np.int64)
