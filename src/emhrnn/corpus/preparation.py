"""`prepare`: files of any size become a corpus folder, in memory that does not grow with them."""

from collections.abc import Container, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Bool
from tqdm import tqdm

from emhrnn.corpus.assembly import Recipe, first_pass, second_pass
from emhrnn.corpus.columns import Columns
from emhrnn.corpus.dataset import Corpus
from emhrnn.corpus.manifest import DATA, Contents, is_corpus, write_manifest
from emhrnn.corpus.readers.source import Paths, Source
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError
from emhrnn.extras import pyarrow as pa
from emhrnn.files import atomic_folder, check_free
from emhrnn.text import TextSettings, Vocabulary
from emhrnn.text.language import AUTO

PROGRESS_ROWS = 200
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
        report = replace(contents.report, columns=dict(origin.taken), encodings=list(origin.encodings))
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
    # disable=None: tqdm shows nothing where stderr is no terminal.
    with tqdm(
        total=origin.meter.total, desc="preparing", unit="B", unit_scale=True, disable=None if progress else True
    ) as bar:
        for number, record in enumerate(origin):
            if number % PROGRESS_ROWS == 0:
                bar.update(origin.meter.done - bar.n)
            if rows is None or rows[number]:
                yield record
        bar.update(origin.meter.done - bar.n)
