"""Parquet, read a few thousand rows at a time."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import Meter, explain_damage
from emhrnn.corpus.record import Record

BATCH_ROWS = 1024


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


def python_values(column: Any) -> list[Any]:
    """Python values; strings come as bytes and are decoded here, because a writer may have put broken UTF-8 there."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return [None if value is None else value.decode("utf-8", "surrogateescape") for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values
