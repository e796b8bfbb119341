"""A data set of Hugging Face's `datasets`, as its `save_to_disk` wrote it: Arrow streams, and JSON that names them.
Their library is not needed to read it.

    reviews/state.json  reviews/data-00000-of-00001.arrow        a Dataset
    reviews/dataset_dict.json  reviews/train/state.json ...      a DatasetDict: the names of its data sets are splits

Labels that are numbers with names (ClassLabel) are read as their names; -1 is no label.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from emhrnn.corpus.readers.parquet import python_values
from emhrnn.corpus.readers.reading import Reading
from emhrnn.corpus.readers.streams import Meter, explain_damage
from emhrnn.corpus.record import Record
from emhrnn.errors import DataError

STATE, DICT = "state.json", "dataset_dict.json"


class Part(NamedTuple):
    """An Arrow file, and the split that it belongs to."""

    file: Path
    split: str | None


def is_dataset(folder: Path) -> bool:
    return (folder / STATE).is_file() or (folder / DICT).is_file()


def dataset_files(folder: Path) -> list[Path]:
    return [part.file for part in _parts(folder)]


def read_dataset(reading: Reading) -> Iterator[Record]:
    number = 0
    for part in _parts(reading.path):
        size = part.file.stat().st_size if part.file.is_file() else 0
        with explain_damage(part.file), pa.memory_map(str(part.file)) as source, pa.ipc.open_stream(source) as stream:
            columns = reading.resolve(stream.schema.names).to_dict()
            by_split = part.split is not None and reading.columns.split is None
            if by_split:
                reading.taken["split"] = DICT
            names = _class_names(stream.schema, columns.get("label"))
            with (reading.meter or Meter(size)).file(size, source.tell):
                for batch in stream:
                    values = {role: python_values(batch.column(name)) for role, name in columns.items()}
                    if names is not None:
                        values["label"] = [_named(label, names) for label in values["label"]]
                    if by_split:
                        values["split"] = [part.split] * batch.num_rows
                    for index in range(batch.num_rows):
                        number += 1
                        yield reading.record(number, {role: column[index] for role, column in values.items()})


def _parts(folder: Path) -> list[Part]:
    try:
        if not (folder / DICT).is_file():
            return [Part(file, None) for file in _files(folder)]
        splits = json.loads((folder / DICT).read_text(encoding="utf-8"))["splits"]
        return [Part(file, str(split)) for split in splits for file in _files(folder / split)]
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{folder} is no complete data set of `datasets`: {STATE} or {DICT} is missing or broken; save it again"
        ) from None


def _files(folder: Path) -> list[Path]:
    listed = json.loads((folder / STATE).read_text(encoding="utf-8"))["_data_files"]
    return [folder / Path(entry["filename"]).name for entry in listed]


def _class_names(schema: Any, column: str | None) -> list[str] | None:
    """The names of the classes, where the label column has numbers for them."""
    try:
        feature = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][column]
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
