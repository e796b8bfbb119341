"""Score a file of any size: each row with words gives one row of predictions, in order, in constant memory."""

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from tqdm import tqdm

from emhrnn.corpus import Corpus, Record, Source, is_corpus
from emhrnn.errors import DataError
from emhrnn.evaluation.predict import predict
from emhrnn.files import atomic_file
from emhrnn.training.data import Named
from emhrnn.training.run import Run

ROWS = 2000  # scored together: enough to sort by length, little enough to keep in memory

Row = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    rows: int
    words: int


def score_file(run: Run, data: Named, out: Path, *, progress: bool = True) -> Scored:
    """Write `id`, `label` and the probability of every class for each row of the data. A row without words gets the
    prediction for one unknown word, so that output and input have the same rows.

    Raises:
        DataError: the data cannot be read, or the name of `out` ends in no known format.
    """
    write = _writer_for(out)
    rows = words = 0
    chunks = _stored_chunks(run, data) if is_corpus(data.path) else _read_chunks(run, data, progress)
    with write(out, ["id", "label", *(f"p_{name}" for name in run.classes)]) as add:
        for ids, corpus in chunks:
            add(_predictions(run, ids, corpus))
            rows += len(corpus)
            words += int(corpus.lengths.sum())
    return Scored(rows, words)


def _predictions(run: Run, ids: list[str], corpus: Corpus) -> list[Row]:
    table = predict(run.model, corpus, multi_label=run.multi_label).probabilities
    columns = [f"p_{name}" for name in run.classes]
    if run.multi_label:
        labels = ["|".join(name for name, p in zip(run.classes, row, strict=True) if p > 0.5) for row in table]
    else:
        labels = [run.classes[best] for best in table.argmax(axis=1)]
    return [
        {"id": id_, "label": label, **dict(zip(columns, map(float, row), strict=True))}
        for id_, label, row in zip(ids, labels, table, strict=True)
    ]


def _read_chunks(run: Run, data: Named, progress: bool) -> Iterator[tuple[list[str], Corpus]]:
    source = Source(data.path, format=data.format, columns=data.columns, split=data.split)
    records = iter(source)
    number = 0
    with tqdm(
        total=source.meter.total, desc="scoring", unit="B", unit_scale=True, disable=None if progress else True
    ) as bar:
        while chunk := list(islice(records, ROWS)):
            ids = [record.id if record.id is not None else str(number + i) for i, record in enumerate(chunk)]
            number += len(chunk)
            yield ids, Corpus.from_texts([_text(r) for r in chunk], vocabulary=run.vocabulary, text=run.text)
            bar.update(source.meter.done - bar.n)


def _text(record: Record) -> str:
    return record.text if record.sentences is None else "\n".join(record.sentences)


def _stored_chunks(run: Run, data: Named) -> Iterator[tuple[list[str], Corpus]]:
    corpus = Corpus.open(data.path).remap(run.vocabulary)
    yield corpus.ids(), corpus


# ------------------------------------------------------------------ writers: called with rows, whole or not at all

Add = Callable[[list[Row]], None]


@contextmanager
def _write_jsonl(out: Path, columns: list[str]) -> Iterator[Add]:
    with atomic_file(out) as file:

        def add(rows: list[Row]) -> None:
            for row in rows:
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))

        yield add


@contextmanager
def _write_csv(out: Path, columns: list[str]) -> Iterator[Add]:
    import io

    with atomic_file(out) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.DictWriter(text, columns)
        writer.writeheader()
        yield writer.writerows
        text.flush()
        text.detach()


@contextmanager
def _write_parquet(out: Path, columns: list[str]) -> Iterator[Add]:
    schema = pa.schema([(name, pa.string() if name in ("id", "label") else pa.float32()) for name in columns])
    with atomic_file(out) as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        yield lambda rows: writer.write_table(pa.Table.from_pylist(rows, schema))


_WRITERS = {".jsonl": _write_jsonl, ".csv": _write_csv, ".parquet": _write_parquet}


def _writer_for(out: Path) -> Callable[[Path, list[str]], Any]:
    if out.suffix not in _WRITERS:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(_WRITERS)}")
    return _WRITERS[out.suffix]
