"""Formats of Arrow: parquet, and data sets of Hugging Face's `datasets` as its `save_to_disk` wrote them, which are
Arrow streams and JSON that names them. Both are read some rows at a time; the `datasets` library is not needed.

    reviews/state.json  reviews/data-00000-of-00001.arrow        a Dataset
    reviews/dataset_dict.json  reviews/train/state.json ...      a DatasetDict: the names of its data sets are splits

Labels that are numbers with names (ClassLabel) are read as their names; -1 is not a label.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate, repeat
from pathlib import Path
from typing import Any

from emhrnn.corpus.readers.input import InputFile, explain_damage
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError
from emhrnn.extras import LateModule, parquet
from emhrnn.extras import pyarrow as pa
from emhrnn.files import from_json

BATCH_ROWS = 1024
pc: Any = LateModule("pyarrow.compute", "Parquet")
OFFSET_BYTES = 4  # of a value, to tell where it begins


def read_parquet(reading: InputFile) -> Iterator[Record]:
    """The rows of a parquet file."""
    with explain_damage(reading.path), _opened(reading.path) as file:
        schema = file.schema_arrow.names
        columns = reading.resolve(schema).to_dict()
        size, rows = reading.path.stat().st_size, max(1, file.metadata.num_rows)
        number = 0
        with reading.meter.file(size, lambda: size * number // rows):
            names = schema if reading.columns.keep else list(dict.fromkeys(columns.values()))
            for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
                values = {role: python_values(batch.column(name)) for role, name in columns.items()}
                yield from _records(reading, batch, values, number)
                number += batch.num_rows


def _records(reading: InputFile, batch: Any, values: dict[str, list[Any]], before: int) -> Iterator[Record]:
    """The rows of a record batch, with values by role; so many were before it."""
    kept: Iterable[dict[str, Any] | None] = repeat(None)
    if reading.columns.keep:
        columns = [python_values(column) for column in batch.columns]
        kept = (dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True))
    rows = zip(*values.values(), strict=True)
    for number, (row, whole) in enumerate(zip(rows, kept, strict=False), start=before + 1):
        yield reading.record(number, dict(zip(values, row, strict=True)), kept=whole)


def _opened(path: Path, **options: Any) -> Any:
    """A damaged page is an error where the file has checksums of its pages; where it has none, they are not missed."""
    options |= {"memory_map": True, "buffer_size": 1 << 20, "page_checksum_verification": True}
    try:
        return parquet.ParquetFile(path, **options)
    except UnicodeDecodeError:
        raise pa.ArrowInvalid("the name of a column is not UTF-8") from None


def unpacked_bytes(path: Path) -> Iterator[int]:
    """What the file is when nothing in it is compressed: first as its footer tells, before anything is unpacked; then
    the values so far, some rows at a time. A value that stands in every row may be in its page once, and is not
    repeated to be counted."""
    with explain_damage(path), _opened(path) as file:
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        yield sum(group.column(index).total_uncompressed_size for group in groups for index in range(group.num_columns))
        leaves = [file.schema.column(index).path for index in range(len(file.schema))]
    with explain_damage(path), _opened(path, read_dictionary=leaves) as file:
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
    types = pa.types
    return any(
        is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    )


STATE, DICT = "state.json", "dataset_dict.json"


def is_dataset(folder: Path) -> bool:
    """Whether `datasets` saved the folder, as a Dataset or a DatasetDict."""
    return (folder / STATE).is_file() or (folder / DICT).is_file()


def dataset_files(folder: Path) -> list[Path]:
    """The Arrow files of a saved data set, split by split."""
    return [file for file, _ in _parts(folder)]


def read_dataset(reading: InputFile) -> Iterator[Record]:
    """The rows of a saved data set, numbered through all of its files."""
    number = 0
    for file, split in _parts(reading.path):
        size = file.stat().st_size if file.is_file() else 0
        with explain_damage(file), pa.memory_map(str(file)) as source, pa.ipc.open_stream(source) as stream:
            columns = reading.resolve(stream.schema.names).to_dict()
            by_split = split is not None and reading.columns.split is None
            if by_split:
                reading.taken["split"] = DICT
            names = _class_names(stream.schema, columns.get("label"))
            with reading.meter.file(size, source.tell):
                for batch in stream:
                    values = {role: python_values(batch.column(name)) for role, name in columns.items()}
                    if names is not None:
                        values["label"] = [_named(label, names) for label in values["label"]]
                    if by_split:
                        values["split"] = [split] * batch.num_rows
                    yield from _records(reading, batch, values, number)
                    number += batch.num_rows


def _parts(folder: Path) -> list[tuple[Path, str | None]]:
    """Each Arrow file, and the split that it belongs to."""
    try:
        if not (folder / DICT).is_file():
            return [(file, None) for file in _files(folder)]
        splits = from_json((folder / DICT).read_text(encoding="utf-8"))["splits"]
        return [(file, str(split)) for split in splits for file in _files(folder / split)]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{folder} is not a complete data set of `datasets`: {STATE} or {DICT} is missing or broken; save it again"
        ) from None


def _files(folder: Path) -> list[Path]:
    listed = from_json((folder / STATE).read_text(encoding="utf-8"))["_data_files"]
    return [folder / Path(entry["filename"]).name for entry in listed]


def _class_names(schema: Any, column: str | None) -> list[str] | None:
    """The names of the classes, where the label column has numbers for them."""
    try:
        feature = from_json((schema.metadata or {})[b"huggingface"])["info"]["features"][column]
    except (KeyError, ValueError, TypeError):
        return None
    while isinstance(feature, dict) and "feature" in feature:  # lists of labels
        feature = feature["feature"]
    if isinstance(feature, list) and feature:
        feature = feature[0]
    if not isinstance(feature, dict) or feature.get("_type") != "ClassLabel":
        return None
    return [str(name) for name in feature["names"]]


def _named(label: Any, names: list[str]) -> Any:
    if isinstance(label, list):
        return [_named(one, names) for one in label]
    return names[label] if isinstance(label, int) and 0 <= label < len(names) else None
