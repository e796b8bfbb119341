"""Tables of rows in files, whole or not at all: .jsonl, .csv and .parquet."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from emhrnn.errors import DataError
from emhrnn.files import atomic_file

Row = dict[str, Any]
Add = Callable[[list[Row]], None]
TEXT_COLUMNS = ("id", "label")


@contextmanager
def opened(out: Path, columns: list[str]) -> Iterator[Add]:
    """A function that takes rows; the file appears when the block ends well."""
    try:
        with writer_for(out)(out, columns) as add:
            yield add
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror or error}; give another file") from error


def writer_for(out: Path) -> Callable[[Path, list[str]], AbstractContextManager[Add]]:
    suffix = out.suffix.lower()
    if suffix not in _WRITERS:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(_WRITERS)}")
    return _WRITERS[suffix]


@contextmanager
def _write_jsonl(out: Path, columns: list[str]) -> Iterator[Add]:
    with atomic_file(out) as file:

        def add(rows: list[Row]) -> None:
            for row in rows:
                file.write((json.dumps(row, ensure_ascii=False) + "\n").encode("utf-8"))

        yield add


@contextmanager
def _write_csv(out: Path, columns: list[str]) -> Iterator[Add]:
    with atomic_file(out) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            writer = csv.DictWriter(text, columns)
            writer.writeheader()
            yield writer.writerows
            text.flush()
        finally:
            text.detach()  # else it would close the file before it has its name


@contextmanager
def _write_parquet(out: Path, columns: list[str]) -> Iterator[Add]:
    schema = pa.schema([(name, pa.string() if name in TEXT_COLUMNS else pa.float32()) for name in columns])
    with atomic_file(out) as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
        yield lambda rows: writer.write_table(pa.Table.from_pylist(rows, schema))


_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_jsonl}
