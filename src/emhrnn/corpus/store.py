"""Documents in one Arrow file, gathered row by row without a loop.

All record batches lie in one piece of memory, usually a memory-mapped file. Seen as one long array of int32, every
document is a range of it: its words, and its sentence offsets (which count from the start of its record batch). So a
batch of any rows is three vectorised gathers, wherever the rows lie. Only the start and length of each document are
kept in memory.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch, offsets_of, ranges
from emhrnn.corpus.encode import UNKNOWN
from emhrnn.errors import CheckpointError
from emhrnn.extras import pyarrow as pa
from emhrnn.shapes import Bool, Float32, Int32, Int64

Rows = Int64[np.ndarray, " rows"]


class Store:
    """The documents of a corpus by row number."""

    def __init__(self, buffer: Any) -> None:
        reader = pa.ipc.open_file(pa.BufferReader(buffer))
        self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._buffer = buffer
        self._int32 = np.frombuffer(buffer, dtype=np.int32, count=buffer.size // 4)
        parts = [self._locate(batch.column("words")) for batch in self._batches]
        self.sentence_starts, self.sentence_counts, self.word_starts, self.lengths = map(
            np.concatenate, zip(*parts, strict=True)
        )
        self.multi_label = "label" in reader.schema.names and pa.types.is_list(reader.schema.field("label").type)
        self._label_offsets, self._labels = self._read_labels()
        self.users = self._integers("user")
        self.products = self._integers("product")
        self.weights: Float32[np.ndarray, " rows"] | None = None
        if "weight" in reader.schema.names:
            self.weights = np.concatenate([batch.column("weight").to_numpy() for batch in self._batches])

        self.marked: Bool[np.ndarray, " all_words"] | None = None
        if "marked" in reader.schema.names:
            values = [batch.column("marked").flatten().to_numpy() for batch in self._batches]
            self.marked, self._marked_starts = np.concatenate(values) > 0, offsets_of(self.lengths)[:-1]

    @classmethod
    def open(cls, path: Path) -> "Store":
        """The store of a file, memory-mapped."""
        try:
            with pa.memory_map(str(path)) as file:
                return cls(file.read_buffer())
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise CheckpointError(f"{path} is not a readable Arrow file ({error}); prepare the corpus again") from None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def labelled(self) -> bool:
        return self._labels is not None

    def gather(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Words (int32), sentence offsets and document offsets of some documents, as in `Batch`."""
        counts = self.sentence_counts[rows]
        starts = ranges(self.sentence_starts[rows], counts)
        sentence_lengths = self._int32[starts + 1] - self._int32[starts]
        words = self._int32[ranges(self.word_starts[rows], self.lengths[rows])]
        return words, offsets_of(sentence_lengths.astype(np.int64)), offsets_of(counts)

    @cached_property
    def first_equal(self) -> Rows:
        """For each document the first row with the same words in the same order; for most, it is their own."""
        if "fingerprint" not in self._batches[0].schema.names:  # an old corpus, whose runs resume with the same split
            return np.arange(len(self))
        prints = np.concatenate([batch.column("fingerprint").to_numpy() for batch in self._batches])
        _, first, number = np.unique(prints, return_index=True, return_inverse=True)
        rows: np.ndarray = first[number]
        return rows

    def labels(self, rows: Rows, n_classes: int) -> Int64[np.ndarray, " rows"] | Float32[np.ndarray, "rows c"] | None:
        """Class ids, or for multi-label data a row of 0 and 1 per document."""
        if self._labels is None:
            return None
        if self._label_offsets is None:
            classes: np.ndarray = self._labels[rows].astype(np.int64)
            return classes
        lengths = np.diff(self._label_offsets)[rows]
        labels = np.zeros((len(rows), n_classes), dtype=np.float32)
        values = self._labels[ranges(self._label_offsets[rows], lengths)]
        labels[np.repeat(np.arange(len(rows)), lengths), values] = 1
        return labels

    def ids(self, rows: Rows) -> list[str]:
        """The documents' ids in their source; where it has none, the row number there, counted from 0."""
        table = pa.Table.from_batches(self._batches).select(["id", "row"]).take(pa.array(rows))
        ids, numbers = table.column("id").to_pylist(), table.column("row").to_pylist()
        return [str(number) if name is None else name for name, number in zip(ids, numbers, strict=True)]

    def source_rows(self, rows: Rows) -> Int64[np.ndarray, " rows"]:
        """The documents' row numbers in their source, counted from 0; skipped rows are counted too."""
        table = pa.Table.from_batches(self._batches)
        numbers: np.ndarray = table.column("row").to_numpy()[rows]
        return numbers

    def batch(self, rows: Rows, positions: Rows, n_classes: int, table: Int32[np.ndarray, " v"] | None) -> Batch:
        """The documents `rows`, with `positions` as the row numbers to tell, and word ids through `table` if given."""
        words, sentence_offsets, document_offsets = self.gather(rows)
        return Batch(
            words=(words if table is None else table[words]).astype(np.int64),
            sentence_offsets=sentence_offsets,
            document_offsets=document_offsets,
            rows=positions,
            labels=self.labels(rows, n_classes),
            users=None if self.users is None else self.users[rows].astype(np.int64),
            products=None if self.products is None else self.products[rows].astype(np.int64),
            weights=None if self.weights is None else self.weights[rows],
            marked=None if self.marked is None else self.marked[ranges(self._marked_starts[rows], self.lengths[rows])],
        )

    def _locate(self, words: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Where each document of a record batch lies in the long array: its sentence offsets and its words."""
        _, _, _, sentence_buffer, _, word_buffer = words.buffers()
        document_offsets = words.offsets.to_numpy().astype(np.int64)
        sentence_offsets = words.values.offsets.to_numpy()
        word_offsets = sentence_offsets[document_offsets].astype(np.int64)
        return (
            self._position(sentence_buffer) + document_offsets[:-1],
            np.diff(document_offsets),
            self._position(word_buffer) + word_offsets[:-1],
            np.diff(word_offsets),
        )

    def _position(self, part: Any) -> int:
        position, rest = divmod(part.address - self._buffer.address, 4)
        if rest or not 0 <= position < len(self._int32):
            raise CheckpointError("the Arrow file is compressed or not aligned; prepare the corpus again")
        return int(position)

    def _integers(self, name: str) -> Int32[np.ndarray, " rows"] | None:
        if name not in self._batches[0].schema.names:
            return None
        return np.concatenate([batch.column(name).fill_null(UNKNOWN).to_numpy() for batch in self._batches])

    def _read_labels(self) -> tuple[Int64[np.ndarray, " rows_plus_1"] | None, Int32[np.ndarray, " labels"] | None]:
        if not self.multi_label:
            return None, self._integers("label")
        columns = [batch.column("label") for batch in self._batches]
        lengths = np.concatenate([np.diff(column.offsets.to_numpy()) for column in columns])
        return offsets_of(lengths.astype(np.int64)), np.concatenate([column.values.to_numpy() for column in columns])
