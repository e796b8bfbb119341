"""Rows as bytes of a file, so that parts written by several processes make one file when put together: .jsonl and .csv
are their lines; .parquet, and .dataset for Hugging Face, are written at the end, from parts that are Arrow streams."""

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet

from emhrnn.corpus.readers.datasets import STATE
from emhrnn.errors import DataError
from emhrnn.files import sha256, write_json

Row = dict[str, Any]
SUFFIXES = (".parquet", ".csv", ".jsonl", ".dataset")
ARROW = "data-00000-of-00001.arrow"
_TEXT = {"id", "label", "sentence", "phrase", "word"}


def check_suffix(out: Path) -> str:
    suffix = out.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(SUFFIXES)}")
    return suffix


def to_bytes(suffix: str, columns: list[str], rows: list[Row], *, first: bool) -> bytes:
    """Part of a file; the `first` part of a csv has the header."""
    if suffix == ".jsonl":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8")
    if suffix == ".csv":
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        if first:
            writer.writerow(columns)
        writer.writerows([row[name] for name in columns] for row in rows)
        return text.getvalue().encode("utf-8")
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows, _schema(columns))
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def write_parquet(out: BinaryIO, parts: Iterable[bytes]) -> None:
    """The parts that `to_bytes` made for .parquet, each a row group."""
    _join(parts, lambda schema: pyarrow.parquet.ParquetWriter(out, schema))


def write_dataset(folder: Path, parts: Iterable[bytes]) -> None:
    """The same as a folder for `datasets.load_from_disk`."""
    with (folder / ARROW).open("wb") as file:
        _join(parts, lambda schema: pa.ipc.new_stream(file, schema))
    state: Row = {"_data_files": [{"filename": ARROW}], "_fingerprint": sha256(folder / ARROW)[:16], "_split": None}
    state |= {"_format_columns": None, "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False}
    write_json(folder / STATE, state)
    write_json(folder / "dataset_info.json", {"description": "Predictions of emhrnn"})


def _join(parts: Iterable[bytes], open_writer: Callable[[Any], Any]) -> None:
    """Arrow streams, one after the other, into a writer that is opened with the schema of the first."""
    writer = None
    for part in parts:
        table = pa.ipc.open_stream(part).read_all()
        writer = writer or open_writer(table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _schema(columns: list[str]) -> Any:
    return pa.schema([(name, pa.string() if name in _TEXT else pa.float32()) for name in columns])
