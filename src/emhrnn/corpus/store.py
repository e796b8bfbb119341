"""The folder of a prepared corpus: what lies in it, whether it is whole, and its documents.

corpus.json      version, classes, report, source, how the text was read, size and checksum of the other files
data.arrow       the documents: words list<list<int32>>, label, row, fingerprint of the text, id, user, product, weight
vocabulary.txt   one word a line, in the order of the ids
users.json, products.json   the names behind the ids, where the source has any

`Store` gathers documents of the Arrow file row by row without a loop. All record batches lie in one piece of memory,
usually a memory-mapped file. Seen as one long array of int32, every document is a range of it: its words, and its
sentence offsets (which count from the start of its record batch). So a batch of any rows is three vectorised gathers,
wherever the rows lie. Only the start and length of each document are kept in memory.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch, offsets_of, ranges
from emhrnn.corpus.encode import UNKNOWN
from emhrnn.errors import CheckpointError
from emhrnn.extras import pyarrow as pa
from emhrnn.files import from_json, sha256, write_json
from emhrnn.shapes import Bool, Float32, Int32, Int64
from emhrnn.text import TextSettings, Vocabulary

MOST_CLASSES = 30  # that are shown


@dataclass(frozen=True, kw_only=True)
class Report:
    """Counts of a prepared corpus.

    `skipped` counts rows by reason, `skipped_first` shows the first place of each; `repaired` counts documents whose
    text was repaired; `capped` counts documents that a limit shortened; `columns` says which column served as what;
    `encodings` are those of the text files; `splits` counts the rows of each split, where all of them were read.
    """

    documents: int
    sentences: int
    words: int
    longest_document: int
    longest_sentence: int
    vocabulary: int
    unknown_words: int
    classes: dict[str, int]
    multi_label: bool = False
    users: int = 0
    products: int = 0
    capped: int = 0
    limits: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    skipped_first: dict[str, str] = field(default_factory=dict)
    repaired: dict[str, int] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    encodings: list[str] = field(default_factory=list)
    splits: dict[str, int] = field(default_factory=dict)

    @property
    def unknown_rate(self) -> float:
        """Share of the words that the vocabulary does not hold."""
        return self.unknown_words / self.words if self.words else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "unknown_rate": self.unknown_rate}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Report":
        return cls(**{name: value for name, value in values.items() if name != "unknown_rate"})

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for the terminal."""
        lines = [
            ("documents", f"{self.documents:,}"),
            ("sentences", f"{self.sentences:,} ({self.sentences / max(1, self.documents):.1f} per document)"),
            ("words", f"{self.words:,} ({self.words / max(1, self.documents):.1f} per document)"),
            ("longest", f"{self.longest_document:,} words; longest sentence {self.longest_sentence:,}"),
            ("vocabulary", f"{self.vocabulary:,} words; {self.unknown_rate:.2%} of the text is unknown"),
        ]
        if self.classes:
            kind = "classes, several per document" if self.multi_label else "classes"
            lines.append((kind, _counts(self.classes)))
        if self.users or self.products:
            lines.append(("given by", f"{self.users:,} users on {self.products:,} products"))
        if self.columns:
            lines.append(("columns", ", ".join(f"{role} = {name}" for role, name in self.columns.items())))
        if self.encodings:
            lines.append(("encoding", ", ".join(self.encodings)))
        if self.limits:
            limits = ", ".join(f"{name} {value:,}" for name, value in self.limits.items())
            lines.append(("shortened", f"{self.capped:,} documents by the limits: {limits}"))
        lines += [
            ("skipped", f"{count:,} rows: {reason} (first: {self.skipped_first.get(reason, 'unknown')})")
            for reason, count in self.skipped.items()
        ]
        return lines + [("repaired", f"{count:,} documents: {what} replaced") for what, count in self.repaired.items()]

    def __str__(self) -> str:
        return in_columns(self.lines())


def _counts(classes: dict[str, int]) -> str:
    """All classes in their order; of more than MOST_CLASSES, those of most documents."""
    many = len(classes) > MOST_CLASSES
    shown = sorted(classes, key=lambda name: -classes[name])[:MOST_CLASSES] if many else classes
    listed = ", ".join(f"{name} ({classes[name]:,})" for name in shown)
    return f"{len(classes):,}; the most frequent: {listed}" if many else listed


def in_columns(lines: Sequence[tuple[str, object]]) -> str:
    """Names and values, a pair a line, aligned."""
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


FORMAT = "emhrnn corpus"
VERSION = 1
MANIFEST, DATA, VOCABULARY = "corpus.json", "data.arrow", "vocabulary.txt"
NAME_FILES = {"users": "users.json", "products": "products.json"}


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a corpus knows besides its documents."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    users: tuple[str, ...]
    products: tuple[str, ...]
    text: TextSettings
    report: Report


def is_corpus(path: Path) -> bool:
    """Whether the path is a folder that `prepare` wrote."""
    return (path / MANIFEST).is_file()


def write_manifest(folder: Path, contents: Contents, source: dict[str, Any]) -> None:
    """Everything beside the data, which must be there already."""
    contents.vocabulary.save(folder / VOCABULARY)
    for kind, name in NAME_FILES.items():
        if names := getattr(contents, kind):
            write_json(folder / name, list(names))
    files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())}
    write_json(
        folder / MANIFEST,
        {
            "format": FORMAT,
            "version": VERSION,
            "classes": list(contents.classes),
            "text": asdict(contents.text),
            "source": source,
            "report": contents.report.to_dict(),
            "files": files,
        },
    )


def read_manifest(folder: Path, *, verify: bool) -> Contents:
    """The contents of a prepared corpus; sizes are always checked, checksums with `verify`.

    Raises:
        CheckpointError: the folder is not a corpus, is of another version, or a file is missing or was changed.
    """
    values = _load(folder)
    try:
        _check_files(folder, values["files"], verify)
        return Contents(
            vocabulary=Vocabulary.load(folder / VOCABULARY),
            classes=tuple(values["classes"]),
            users=_names(folder, values, "users"),
            products=_names(folder, values, "products"),
            text=TextSettings.from_dict(values["text"]),
            report=Report.from_dict(values["report"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(folder / MANIFEST, f"{type(error).__name__}: {error}") from None


def _load(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        values = from_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{folder} is not a prepared corpus: it has no {MANIFEST}; prepare it first") from None
    except (ValueError, OSError) as error:
        raise _damaged(path, str(error)) from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise CheckpointError(f"{path} does not describe a prepared corpus; prepare it again")
    if values.get("version") != VERSION:
        raise CheckpointError(
            f"{folder} has version {values.get('version')} of the corpus format, this program reads version {VERSION}; "
            "prepare it again"
        )
    if not isinstance(values.get("files"), dict) or DATA not in values["files"]:
        raise _damaged(path, "the list of files is missing")
    return values


def _check_files(folder: Path, files: dict[str, Any], verify: bool) -> None:
    for name, expected in files.items():
        path = folder / Path(name).name
        if len(name.encode()) > 255 or not path.is_file():  # longer than a name can be: the system would refuse it
            raise CheckpointError(f"{path} is missing; prepare the corpus again")
        if path.stat().st_size != expected["bytes"]:
            raise _damaged(path, f"{path.stat().st_size} bytes instead of {expected['bytes']}")
        if verify and sha256(path) != expected["sha256"]:
            raise _damaged(path, "its checksum differs")


def _names(folder: Path, values: dict[str, Any], kind: str) -> tuple[str, ...]:
    if NAME_FILES[kind] not in values["files"]:
        return ()
    return tuple(from_json((folder / NAME_FILES[kind]).read_text(encoding="utf-8")))


def _damaged(path: Path, why: str) -> CheckpointError:
    return CheckpointError(f"{path} is damaged ({' '.join(why.split())}); prepare the corpus again")


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
