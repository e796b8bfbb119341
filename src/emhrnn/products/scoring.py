"""Score a file of any size: each row in gives one row out, in the same order, in constant memory."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from tqdm import tqdm

from emhrnn.corpus import Corpus, Source
from emhrnn.errors import DataError
from emhrnn.products.model import labels_of
from emhrnn.products.tables import Row, opened, writer_for
from emhrnn.training.data import Named, other_corpus, prepared
from emhrnn.training.run import Run

ROWS = 2000  # scored together: enough to sort by length, little enough to keep in memory


@dataclass(frozen=True)
class Scored:
    rows: int
    words: int


def check_out(out: Path, data: Path) -> None:
    """Raise a DataError for a file that cannot take the predictions, before any work is done."""
    writer_for(out)
    if out.is_dir():
        raise DataError(f"{out} is a folder, the predictions go to one file; give the name of a file")
    if out.exists() and data.exists() and out.samefile(data):
        raise DataError(f"{out} is the data itself, which would be replaced by its predictions; give another file")


def score_file(run: Run, data: Named, out: Path, *, progress: bool = True) -> Scored:
    """Write `id`, `label` and the probability of every class for each row of the data. A row without words gets the
    prediction for one unknown word, so that output and input have the same rows.

    Raises:
        DataError: the data cannot be read, or `out` cannot be written.
    """
    check_out(out, data.path)
    rows = words = 0
    stored = prepared(data)
    chunks = _read_chunks(run, data, progress) if stored is None else _stored_chunks(run, data, stored)
    with opened(out, ["id", "label", *(f"p_{name}" for name in run.classes)]) as add:
        for ids, corpus in chunks:
            add(_predictions(run, ids, corpus))
            rows += len(corpus)
            words += int(corpus.lengths.sum())
    return Scored(rows, words)


def _predictions(run: Run, ids: list[str], corpus: Corpus) -> list[Row]:
    table = run.predict(corpus).probabilities
    columns = [f"p_{name}" for name in run.classes]
    labels = [label if isinstance(label, str) else "|".join(label) for label in labels_of(run, table)]
    # Through text, so that csv and jsonl show the seven digits that there are, not seventeen.
    shares = np.array([float(text) for text in table.ravel().astype("U16")]).reshape(table.shape).tolist()
    return [
        {"id": id_, "label": label, **dict(zip(columns, row, strict=True))}
        for id_, label, row in zip(ids, labels, shares, strict=True)
    ]


def _read_chunks(run: Run, data: Named, progress: bool) -> Iterator[tuple[list[str], Corpus]]:
    source = Source(data.path, format=data.format, columns=data.columns, split=data.split)
    number = 0
    bar = tqdm(total=source.meter.total, desc="scoring", unit="B", unit_scale=True, disable=None if progress else True)
    with bar, closing(iter(source)) as records:
        while chunk := list(islice(records, ROWS)):
            ids = [record.id if record.id is not None else str(number + i) for i, record in enumerate(chunk)]
            number += len(chunk)
            yield ids, Corpus.from_records(chunk, vocabulary=run.vocabulary, text=run.text)
            bar.update(source.meter.done - bar.n)
    if not number:
        raise DataError(f"{data.path} has no rows; give a file with documents")


def _stored_chunks(run: Run, data: Named, stored: Corpus) -> Iterator[tuple[list[str], Corpus]]:
    corpus = other_corpus(data, data.path, vocabulary=run.vocabulary, classes=run.classes, text=run.text)
    for start in range(0, len(stored), ROWS):
        part = corpus.select(np.arange(start, min(start + ROWS, len(corpus))))
        yield part.ids(), part
