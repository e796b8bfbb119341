"""Folders that Hugging Face's `datasets` saved are read as any other file."""

import json
from pathlib import Path
from typing import Any

import pytest

from emhrnn.corpus import Columns, Source
from emhrnn.corpus.readers.source import data_files
from emhrnn.errors import DataError

datasets = pytest.importorskip("datasets", reason="needs the extra: datasets")

ROWS = {"id": [7, 8, 9], "text": ["Good.", "Bad.", None], "label": [1, 0, -1]}


@pytest.fixture(autouse=True)
def _quiet() -> None:
    datasets.disable_progress_bars()


def features(label: Any) -> Any:
    return datasets.Features({"id": datasets.Value("int64"), "text": datasets.Value("string"), "label": label})


def test_a_dataset(tmp_path: Path) -> None:
    label = datasets.ClassLabel(names=["bad", "good"])
    datasets.Dataset.from_dict(ROWS, features(label)).save_to_disk(tmp_path / "d", num_shards=2)
    source = Source(tmp_path / "d", lenient=True)
    assert source.formats == ["datasets"]
    records = list(source)
    assert [(r.id, r.text, r.label, r.fault) for r in records] == [
        ("7", "Good.", "good", None),
        ("8", "Bad.", "bad", None),
        ("9", "", None, "no text"),
    ]
    assert source.meter.done == source.meter.total > 0
    assert str(records[2].where) == f"{tmp_path / 'd'}, row 3"
    assert data_files(tmp_path / "d") == [tmp_path / "d"]


def test_plain_and_several_labels(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"text": ["a"], "label": [3]}).save_to_disk(tmp_path / "plain")
    assert [r.label for r in Source(tmp_path / "plain")] == ["3"]
    several = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.Sequence(datasets.ClassLabel(names=["plot", "cast"]))}
    )
    datasets.Dataset.from_dict({"text": ["a", "b"], "label": [[0, 1], []]}, several).save_to_disk(tmp_path / "several")
    assert [r.label for r in Source(tmp_path / "several")] == [("plot", "cast"), ()]


def test_the_names_of_a_dict_are_splits(tmp_path: Path) -> None:
    parts = {
        name: datasets.Dataset.from_dict({"text": texts, "label": ["x"] * len(texts)})
        for name, texts in {"train": ["a", "b"], "test": ["c"]}.items()
    }
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "d")
    assert [(r.text, r.split) for r in Source(tmp_path / "d")] == [("a", "train"), ("b", "train"), ("c", "test")]
    assert [r.text for r in Source(tmp_path / "d", split="test")] == ["c"]
    assert [r.text for r in Source(tmp_path / "d" / "train")] == ["a", "b"]
    with pytest.raises(DataError, match=r"no rows of the split 'valid'.*'test', 'train'"):
        list(Source(tmp_path / "d", split="valid"))


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    datasets.Dataset.from_dict({"text": ["a"]}).save_to_disk(folder)
    with pytest.raises(DataError, match="no label column found"):
        list(Source(folder))
    (arrow,) = folder.glob("*.arrow")
    arrow.write_bytes(arrow.read_bytes()[:100])
    with pytest.raises(DataError, match="damaged"):
        list(Source(folder, columns=Columns(labelled=False)))
    arrow.unlink()
    with pytest.raises(DataError, match="does not exist"):
        list(Source(folder, columns=Columns(labelled=False)))
    (folder / "state.json").write_text(json.dumps({}))
    with pytest.raises(DataError, match=r"not a complete data set.*save it again"):
        list(Source(folder))
