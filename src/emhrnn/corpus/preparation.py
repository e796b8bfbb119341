"""Corpus folders, written in memory that does not grow with them: `prepare` from files of any size, `union` from the
documents of several corpora, as a model needs them that continues to learn."""

from collections.abc import Container, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from emhrnn.corpus.assembly import Recipe, first_pass, second_pass
from emhrnn.corpus.batch import fingerprints, offsets_of
from emhrnn.corpus.dataset import Corpus
from emhrnn.corpus.readers.source import Paths, Source
from emhrnn.corpus.record import Columns, Record
from emhrnn.corpus.store import DATA, Contents, Report, is_corpus, write_manifest
from emhrnn.errors import DataError
from emhrnn.extras import pyarrow as pa
from emhrnn.files import atomic_folder, check_free
from emhrnn.shapes import Bool
from emhrnn.text import TextSettings, Vocabulary
from emhrnn.text.language import AUTO

PROGRESS_ROWS = 200
AT_ONCE = 2000  # documents of a record batch of `union`
CELLS = {"csv", "tsv", "xlsx"}  # formats without lists


def prepare(
    source: Paths,
    destination: str | Path,
    *,
    format: str | None = None,
    columns: Columns | None = None,
    split: str | None = None,
    encoding: str | None = None,
    rows: Bool[np.ndarray, " rows"] | None = None,
    vocabulary: Vocabulary | None = None,
    min_count: int = 1,
    max_words: int | None = None,
    known: Container[str] | None = None,
    classes: Sequence[str] | None = None,
    users: Sequence[str] | None = None,
    products: Sequence[str] | None = None,
    multi_label: bool | None = None,
    text: TextSettings | None = None,
    strict: bool = False,
    progress: bool = True,
    overwrite: bool = False,
) -> Corpus:
    """Reads, tokenises and stores a source as a corpus folder, and opens it.

    Args:
        source: a file, several files, or a folder with one folder of .txt files per class.
        destination: the folder to write. It appears only when it is complete.
        format: csv, tsv, jsonl, xlsx, parquet, folder, datasets, tang or zhang; by default told from name and content.
        columns: names of the columns; by default guessed. The report says which were taken.
        split: read only the rows with this value in the split column.
        encoding: of text files, such as cp1252; by default detected.
        rows: which rows to take, for splits that the source does not know; one value for each that `split` leaves.
        vocabulary: a vocabulary to use as it is, for example that of a trained model. Without it, one is made of the
            words that occur at least `min_count` times, at most `max_words` of them; words in `known`, for example
            those of pretrained vectors, count as frequent enough however rare they are.
        classes: the class names in the order of their ids; a row with any other label is an error. By default, the
            labels found: numbers by value, others by the alphabet.
        users, products: names in the order of their ids; any other becomes -1. By default, the names found.
        multi_label: whether a label such as `plot|cast` is two labels, as for a model that was trained on several. By
            default, it is if `plot` or `cast` is in another label, too, and `classes` are not given.
        text: how text is split into words, and limits on the size of documents; by default, the language is detected.
        strict: rows that would be skipped (no text, no label) or repaired (broken UTF-8, NUL bytes) are errors.
        progress: a bar on stderr, if that is a terminal.
        overwrite: replace a corpus that is already at `destination`.

    Raises:
        DataError: the source cannot be read as asked; the message says where and what to do.
    """
    destination = Path(destination)
    if overwrite and destination.is_dir() and any(destination.iterdir()) and not is_corpus(destination):
        raise DataError(f"{destination} is a folder but no corpus, so it is not overwritten; give another destination")
    check_free(destination, overwrite=overwrite)
    origin = Source(source, format=format, columns=columns, split=split, encoding=encoding)
    recipe = Recipe(
        vocabulary=vocabulary,
        min_count=min_count,
        max_words=max_words,
        known=known,
        classes=classes,
        users=users,
        products=products,
        multi_label=multi_label,
        cells=CELLS.issuperset(origin.formats),
        labelled=origin.columns.labelled,
        text=text or TextSettings(language=AUTO),
        strict=strict,
    )
    with atomic_folder(destination, overwrite=overwrite) as folder:
        contents = _write_data(folder, origin, recipe, rows, progress)
        report = replace(
            contents.report,
            columns=dict(origin.taken),
            encodings=list(origin.encodings),
            splits=dict(origin.splits) if split is None and rows is None else {},
        )
        described = {"files": [str(path) for path in origin.paths], "formats": origin.formats, "split": split}
        write_manifest(folder, replace(contents, report=report), described)
    return Corpus.open(destination, verify=False)


def _write_data(
    folder: Path, origin: Source, recipe: Recipe, rows: Bool[np.ndarray, " rows"] | None, progress: bool
) -> Contents:
    """Both passes. The files are read and written, not mapped: mapped pages would count as this process's memory."""
    scratch = folder / "first-pass.arrow"
    with pa.OSFile(str(scratch), "wb") as sink, closing(_with_progress(origin, rows, progress)) as records:
        assembly = first_pass(records, recipe, sink, str(origin))
    with pa.OSFile(str(scratch), "rb") as file, pa.OSFile(str(folder / DATA), "wb") as sink:
        contents = second_pass(assembly, pa.ipc.open_file(file), sink)
    scratch.unlink()
    return contents


def _with_progress(
    origin: Source, rows: Bool[np.ndarray, " rows"] | None, progress: bool
) -> Generator[Record, None, None]:
    # disable=None: tqdm shows nothing where stderr is not a terminal.
    with tqdm(
        total=origin.meter.total, desc="preparing", unit="B", unit_scale=True, disable=None if progress else True
    ) as bar:
        for number, record in enumerate(origin):
            if number % PROGRESS_ROWS == 0:
                bar.update(origin.meter.done - bar.n)
            if rows is None or rows[number]:
                yield record
        bar.update(origin.meter.done - bar.n)


def union(
    parts: Sequence[Corpus],
    destination: Path,
    *,
    vocabulary: Vocabulary,
    classes: tuple[str, ...],
    weights: Sequence[float] | None = None,
) -> Corpus:
    """The documents of labelled corpora, one corpus after the other, in a new corpus folder. Words and classes of each
    must have the same ids in `vocabulary` and `classes`, which may have more. `weights`: what each document of a corpus
    counts in training, times its own weight. Where one corpus has spans that people marked, the union has them, too."""
    marked = any(part.has_spans for part in parts)
    factors = [1.0] * len(parts) if weights is None else list(weights)
    with atomic_folder(destination) as folder:
        with pa.OSFile(str(folder / DATA), "wb") as sink:
            writer = None
            for part, factor in zip(parts, factors, strict=True):
                for first in range(0, len(part), AT_ONCE):
                    rows = np.arange(first, min(first + AT_ONCE, len(part)))
                    batch = pa.record_batch(_columns(part, rows, factor, weighted=weights is not None, marked=marked))
                    writer = writer or pa.ipc.new_file(sink, batch.schema)
                    writer.write_batch(batch)
            assert writer is not None, "no documents"
            writer.close()
        report = _report(parts, vocabulary, classes)
        contents = Contents(
            vocabulary=vocabulary, classes=classes, users=(), products=(), text=parts[0].text, report=report
        )
        write_manifest(folder, contents, {"files": [], "formats": [], "split": None})
    return Corpus.open(destination, verify=False)


def _columns(corpus: Corpus, rows: np.ndarray, factor: float, *, weighted: bool, marked: bool) -> dict[str, object]:
    batch = corpus.batch(rows)
    assert batch.labels is not None
    sentences = pa.ListArray.from_arrays(batch.sentence_offsets.astype(np.int32), batch.words.astype(np.int32))
    columns = {
        "words": pa.ListArray.from_arrays(batch.document_offsets.astype(np.int32), sentences),
        "row": pa.array(corpus.source_rows(rows), pa.int64()),
        "fingerprint": pa.array(fingerprints(batch.words, batch.document_lengths)),
        "id": pa.array(corpus.ids(rows), pa.string()),
    }
    if batch.labels.ndim == 2:
        labels = [np.flatnonzero(row).tolist() for row in batch.labels]
        columns["label"] = pa.array(labels, pa.list_(pa.int32()))
    else:
        columns["label"] = pa.array(batch.labels, pa.int32())
    if weighted:
        own = np.ones(len(rows)) if batch.weights is None else batch.weights
        columns["weight"] = pa.array(own * factor, pa.float32())
    if marked:
        words = np.zeros(batch.n_words, dtype=bool) if batch.marked is None else batch.marked
        offsets = offsets_of(batch.document_lengths).astype(np.int32)
        columns["marked"] = pa.ListArray.from_arrays(offsets, words.astype(np.uint8))
    return columns


def _report(parts: Sequence[Corpus], vocabulary: Vocabulary, classes: tuple[str, ...]) -> Report:
    """Counts of all parts; what was skipped and repaired is of the first, the new documents."""
    counts = np.zeros(len(classes), dtype=np.int64)
    for part in parts:
        counts[: len(part.classes)] += part.class_counts
    return replace(
        parts[0].report,
        documents=sum(map(len, parts)),
        sentences=sum(int(part.sentence_counts.sum()) for part in parts),
        words=sum(int(part.lengths.sum()) for part in parts),
        longest_document=max(int(part.lengths.max()) for part in parts),
        vocabulary=len(vocabulary),
        classes=dict(zip(classes, counts.tolist(), strict=True)),
        users=0,
        products=0,
    )
