"""Parquet, read a few thousand rows at a time."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import Meter, explain_damage
from emhrnn.corpus.record import Record

BATCH_ROWS = 1024
OFFSET_BYTES = 4  # of a value, to tell where it begins
TEXT_KINDS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def read_parquet(reading: Reading) -> Iterator[Record]:
    with explain_damage(reading.path), pq.ParquetFile(reading.path, memory_map=True, buffer_size=1 << 20) as file:
        columns = reading.resolve(file.schema_arrow.names).to_dict()
        size, rows = reading.path.stat().st_size, max(1, file.metadata.num_rows)
        number = 0
        meter = reading.meter or Meter(size)
        with meter.file(size, lambda: size * number // rows):
            names = list(dict.fromkeys(columns.values()))
            for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
                values = {role: python_values(batch.column(name)) for role, name in columns.items()}
                for index in range(batch.num_rows):
                    number += 1
                    yield reading.record(number, {role: column[index] for role, column in values.items()})


def unpacked_bytes(path: Path) -> Iterator[int]:
    """What the file is when nothing in it is compressed: first as its footer tells, before anything is unpacked; then
    the values so far, some rows at a time. A value that stands in every row may be in its page once, and is not
    repeated to be counted."""
    with explain_damage(path), pq.ParquetFile(path, memory_map=True) as file:
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        yield sum(group.column(index).total_uncompressed_size for group in groups for index in range(group.num_columns))
        leaves = [file.schema.column(index).path for index in range(len(file.schema))]
    shared: dict[str, Any] = {"memory_map": True, "buffer_size": 1 << 20, "read_dictionary": leaves}
    with explain_damage(path), pq.ParquetFile(path, **shared) as file:
        batches = file.iter_batches(BATCH_ROWS, use_threads=False)
        yield from accumulate(sum(map(_value_bytes, batch.columns)) for batch in batches)


def _value_bytes(column: Any) -> int:
    if pa.types.is_struct(column.type):
        return sum(map(_value_bytes, column.flatten()))
    if pa.types.is_nested(column.type):
        return OFFSET_BYTES * len(column) + _value_bytes(column.flatten())
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    if not _is_text(column.type.value_type):  # categories that are numbers
        return int(column.dictionary_decode().nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return OFFSET_BYTES * len(column) + (pc.sum(lengths).as_py() or 0)


def python_values(column: Any) -> list[Any]:
    """Python values; strings come as bytes and are decoded here, because a writer may have put broken UTF-8 there."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _is_text(column.type):
        column = column.cast(pa.large_binary())
        return [None if value is None else value.decode("utf-8", "surrogateescape") for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


def _is_text(kind: Any) -> bool:
    return any(is_kind(kind) for is_kind in TEXT_KINDS)
