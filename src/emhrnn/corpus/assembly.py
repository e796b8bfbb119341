"""From records to a corpus, on disk or in memory: two passes over Arrow record batches.

The first (`first_pass`) tokenises all records and writes them with ids by first appearance; an `Assembly` skips what
cannot be used and counts everything. Then the vocabulary and the order of the classes are decided. The second
(`second_pass`) is a table look-up per word and label. Neither holds more than one record batch in memory.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from emhrnn.corpus.batch import fingerprints, offsets_of
from emhrnn.corpus.encode import UNKNOWN, NameTable
from emhrnn.corpus.record import Label, Record
from emhrnn.corpus.store import Contents, Report
from emhrnn.errors import DataError
from emhrnn.extras import pyarrow as pa
from emhrnn.shapes import Int32, Int64, UInt8
from emhrnn.text import UNK, Encoded, TextSettings, Vocabulary, WordEncoder
from emhrnn.text.language import AUTO, SAMPLE, detected
from emhrnn.text.vocabulary import encoded_words

EMPTY_TEXT = "empty text"
NO_LABEL = "no label"
CHUNK_CHARACTERS = 1 << 20
BAR = "|"  # between the labels of a cell


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How records become a corpus; the arguments of `prepare`, which explains them."""

    vocabulary: Vocabulary | None = None
    min_count: int = 1
    max_words: int | None = None
    known: Container[str] | None = None
    classes: Sequence[str] | None = None
    users: Sequence[str] | None = None
    products: Sequence[str] | None = None
    labelled: bool = True
    multi_label: bool | None = None
    cells: bool = False  # labels are cells of a table, which cannot hold lists
    text: TextSettings = field(default_factory=lambda: TextSettings(language=AUTO))
    strict: bool = False


Chunk = list[tuple[int, Record]]  # records with their row numbers in the source, counted from 0


class Assembly:
    """Writes documents to `sink` as they come, and keeps the counts and tables that the second pass needs.

    Rows without words or label are skipped and counted; with `strict`, they are errors, and so is what was repaired.
    """

    def __init__(self, sink: Any, recipe: Recipe) -> None:
        self._sink = sink
        self._writer: Any = None
        self.recipe, self.labelled, self.strict = recipe, recipe.labelled, recipe.strict
        self.words = NameTable()
        self.words.id_of(UNK)  # id 0
        self._encoder = WordEncoder(self.words, recipe.text)
        self.classes, self.users, self.products = map(NameTable, (recipe.classes, recipe.users, recipe.products))
        self.multi_label: bool | None = None
        self.seen = self.documents = self.sentences = self.longest_document = self.longest_sentence = self.capped = 0
        self.skipped: Counter[str] = Counter()
        self.skipped_first: dict[str, str] = {}
        self.repaired: Counter[str] = Counter()
        self.class_counts: Counter[int] = Counter()

    def read(self, records: Iterable[Record]) -> None:
        """Encode and write all records that can be used, in chunks of about a megabyte."""
        chunk: Chunk = []
        size = 0
        for row, record in enumerate(records):
            self.seen = row + 1
            if not self._accepts(record):
                continue
            chunk.append((row, record))
            size += len(record.text)
            if size >= CHUNK_CHARACTERS:
                self._add(chunk)
                chunk, size = [], 0
        if chunk:
            self._add(chunk)
        if self._writer is not None:
            self._writer.close()

    def _accepts(self, record: Record) -> bool:
        if self.strict and record.repairs:
            what = " and ".join(record.repairs)
            raise DataError(f"{record.where} has {what}; fix the file, or read it without strict")
        if self.labelled and record.label is None:
            self._skip(NO_LABEL, record)
            return False
        return True

    def _skip(self, reason: str, record: Record) -> None:
        if self.strict:
            raise DataError(f"{record.where} has {reason}; fix the file, or read it without strict")
        self.skipped[reason] += 1
        self.skipped_first.setdefault(reason, str(record.where))

    def _add(self, chunk: Chunk) -> None:
        encoded = self._encoder.encode([record.sentences or record.text for _, record in chunk])
        sentences = np.diff(encoded.document_offsets)
        for index in np.flatnonzero(sentences == 0).tolist():
            self._skip(EMPTY_TEXT, chunk[index][1])
        full = np.flatnonzero(sentences).tolist()
        if full:
            chunk = [chunk[index] for index in full]
            self._count(chunk, encoded)
            self._write(chunk, encoded, offsets_of(sentences[full]))

    def _count(self, chunk: Chunk, encoded: Encoded) -> None:
        self.documents += len(chunk)
        self.sentences += len(encoded.sentence_offsets) - 1
        self.capped += int(encoded.cut.sum())
        self.longest_document = max(self.longest_document, int(encoded.lengths.max()))
        self.longest_sentence = max(self.longest_sentence, int(np.diff(encoded.sentence_offsets).max()))
        for _, record in chunk:
            self.repaired.update(record.repairs)

    def _write(self, chunk: Chunk, encoded: Encoded, document_offsets: Int64[np.ndarray, " documents_plus_1"]) -> None:
        records = [record for _, record in chunk]
        sentences = pa.ListArray.from_arrays(encoded.sentence_offsets.astype(np.int32), encoded.words)
        columns = {
            "words": pa.ListArray.from_arrays(document_offsets.astype(np.int32), sentences),
            "row": pa.array([row for row, _ in chunk], pa.int64()),
            "fingerprint": pa.array(fingerprints(encoded.words, encoded.lengths[encoded.lengths > 0])),
            "id": pa.array([record.id for record in records], pa.string()),
            "user": pa.array([self.users.id_of(record.user) for record in records], pa.int32()),
            "product": pa.array([self.products.id_of(record.product) for record in records], pa.int32()),
        }
        if self.labelled:
            columns["label"] = self._labels(records)
        if records[0].weight is not None:  # then all have one
            columns["weight"] = pa.array([record.weight for record in records], pa.float32())
        if records[0].spans is not None:  # then all have some, or none that are marked
            columns["marked"] = pa.array([self._marked(record) for record in records], pa.list_(pa.uint8()))
        batch = pa.record_batch(columns)
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._sink, batch.schema)
        self._writer.write_batch(batch)

    def _marked(self, record: Record) -> UInt8[np.ndarray, " words"]:
        """1 for each word that a span touches."""
        ((document,), _) = self._encoder.locate([record.sentences or record.text])
        marked = np.zeros(len(document), dtype=np.uint8)
        for start, end in record.spans or ():
            marked[(document.starts < end) & (document.ends > start)] = 1
        return marked

    def _labels(self, records: list[Record]) -> Any:
        if self.multi_label is None:
            self.multi_label = isinstance(self._label(records[0]), tuple)
        labels = [self._label_ids(record) for record in records]
        self.class_counts.update(index for ids in labels for index in ids)
        if self.multi_label:
            return pa.array(labels, pa.list_(pa.int32()))
        return pa.array([ids[0] for ids in labels], pa.int32())

    def _label(self, record: Record) -> Label | None:
        """The label, in parts where several are known to be meant."""
        label = record.label
        if self.recipe.multi_label and isinstance(label, str) and (self.recipe.cells or BAR in label):
            return parts_of(label)
        return label

    def _label_ids(self, record: Record) -> list[int]:
        label = self._label(record)
        if isinstance(label, tuple) != self.multi_label:
            one, many = ("a list of labels", "one label") if isinstance(label, tuple) else ("one label", "a list")
            raise DataError(f"{record.where} has {one} and the rows before it have {many}; give all rows the same kind")
        names = label if isinstance(label, tuple) else (label,)
        ids = [self.classes.id_of(name) for name in names]
        if UNKNOWN in ids:
            unknown = names[ids.index(UNKNOWN)]
            known = ", ".join(map(repr, self.classes.names[:20])) + (", ..." if len(self.classes) > 20 else "")
            raise DataError(
                f"{record.where} has the label {unknown!r}, which is none of the model's classes {known}; "
                "leave the row out or train with it"
            )
        return ids


def renumber(
    reader: Any,
    sink: Any,
    *,
    words: Int32[np.ndarray, " words"],
    labels: list[list[int]],
    split: bool,
    drop: list[str],
) -> None:
    """Copies record batches with new ids: `words[old]` and `labels[old]` are the new ones. Drops unused columns. With
    `split`, one old label is several new ones."""
    classes = np.array([] if split else [ids[0] for ids in labels], dtype=np.int32)
    writer: Any = None
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        columns = {name: batch.column(name) for name in batch.schema.names if name not in drop}
        columns["words"] = _renumbered(columns["words"], words)
        if "label" in columns and split:
            columns["label"] = pa.array([labels[old] for old in columns["label"].to_pylist()], pa.list_(pa.int32()))
        elif "label" in columns:
            columns["label"] = _renumbered(columns["label"], classes)
        batch = pa.record_batch(columns)
        writer = writer or pa.ipc.new_file(sink, batch.schema)
        writer.write_batch(batch)
    writer.close()


def _renumbered(array: Any, table: Int32[np.ndarray, " names"]) -> Any:
    """The same nesting of lists over renumbered values."""
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _renumbered(array.values, table))
    return pa.array(table[array.to_numpy()])


def first_pass(records: Iterable[Record], recipe: Recipe, sink: Any, origin: str) -> Assembly:
    """Tokenises all records and writes them with ids by first appearance. `origin` names them in an error."""
    if recipe.text.language == AUTO:
        records = iter(records)
        first = list(islice(records, SAMPLE))
        language = detected(record.text for record in first)
        recipe, records = replace(recipe, text=replace(recipe.text, language=language)), chain(first, records)
    assembly = Assembly(sink, recipe)
    assembly.read(records)
    if not assembly.documents:
        skipped = "".join(f", {count} with {reason}" for reason, count in assembly.skipped.items())
        raise DataError(
            f"{origin} has no usable document ({assembly.seen} rows read{skipped}); give rows with text and label"
        )
    return assembly


def second_pass(assembly: Assembly, reader: Any, sink: Any) -> Contents:
    """Decides the vocabulary and the order of the classes, and writes the documents with their final ids."""
    recipe, words = assembly.recipe, assembly.words.names
    counts = np.zeros(len(words), dtype=np.int64)
    for number in range(reader.num_record_batches):
        of_batch = np.bincount(reader.get_batch(number).column("words").values.values.to_numpy())
        counts[: len(of_batch)] += of_batch
    vocabulary = recipe.vocabulary or Vocabulary.from_counts(
        dict(zip(words, counts.tolist(), strict=True)),
        min_count=recipe.min_count,
        max_size=recipe.max_words,
        known=recipe.known,
    )
    word_table = encoded_words(words, vocabulary, recipe.text.language)
    found = assembly.classes.names
    split = recipe.multi_label is None and recipe.classes is None and not assembly.multi_label and are_cells(found)
    members = [parts_of(name) if split else (name,) for name in found]
    names = dict.fromkeys(name for parts in members for name in parts)
    classes = list(recipe.classes) if recipe.classes is not None else in_natural_order(list(names))
    class_ids = {name: index for index, name in enumerate(classes)}
    label_ids = [[class_ids[name] for name in parts] for parts in members]
    class_counts = Counter[str]()
    for old, parts in enumerate(members):
        class_counts.update(dict.fromkeys(parts, assembly.class_counts[old]))
    drop = [name for name, table in (("user", assembly.users), ("product", assembly.products)) if not len(table)]
    renumber(reader, sink, words=word_table, labels=label_ids, split=split, drop=drop)
    same = ("documents", "sentences", "longest_document", "longest_sentence", "capped", "skipped_first")
    report = Report(
        **{name: getattr(assembly, name) for name in same},
        words=int(counts.sum()),
        vocabulary=len(vocabulary),
        unknown_words=int(counts[word_table == 0].sum()),
        classes={name: class_counts[name] for name in classes},
        multi_label=split or bool(assembly.multi_label),
        users=len(assembly.users),
        products=len(assembly.products),
        limits={name: value for name, value in asdict(recipe.text.limits).items() if value is not None},
        skipped=dict(assembly.skipped),
        repaired=dict(assembly.repaired),
    )
    return Contents(
        vocabulary=vocabulary,
        classes=tuple(classes),
        users=tuple(assembly.users.names),
        products=tuple(assembly.products.names),
        text=recipe.text,
        report=report,
    )


def parts_of(cell: str) -> tuple[str, ...]:
    """The labels of a cell such as `plot|cast`, as `emhrnn predict` writes several."""
    return tuple(dict.fromkeys(name for part in cell.split(BAR) if (name := part.strip())))


def are_cells(labels: Sequence[str]) -> bool:
    """Whether labels with bars are several labels each: some part is then in two of them. `Home|Garden` alone is a
    name."""
    parts = [part for label in labels for part in parts_of(label)]
    return any(BAR in label for label in labels) and len(set(parts)) < len(parts)


def in_natural_order(names: Sequence[str]) -> list[str]:
    """Numbers by value (2 before 10) when all names are numbers, else by the alphabet."""
    alphabetical = sorted(names)
    try:
        return sorted(alphabetical, key=float)
    except ValueError:
        return alphabetical
