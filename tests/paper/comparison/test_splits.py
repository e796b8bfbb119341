"""The same split for all: from files, from a column, or drawn once."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus import Columns
from emhrnn.errors import DataError
from emhrnn.paper.comparison.splits import Split, part_files, plan_split


def write(path: Path, splits: list[str | None], labels: list[str] | None = None) -> Path:
    rows = [
        {"text": f"text {i}", "label": "ab"[i % 2] if labels is None else labels[i]} | ({"split": s} if s else {})
        for i, s in enumerate(splits)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plan(path: Path, test: Path | None = None, limit: int | None = None) -> Split:
    return plan_split(path, test=test, format=None, columns=Columns(), limit=limit)


def test_a_split_column_is_used(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", ["train", "train", "dev", "TEST", "unmatched"])
    split = plan(path)
    assert split.train.rows.tolist() == [True, True, False, False, False]
    assert split.valid.rows.tolist() == [False, False, True, False, False]
    assert split.test.rows.tolist() == [False, False, False, True, False]
    assert split.left_out == {"unmatched": 1}


def test_without_validation_rows_they_are_split_off(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", ["train"] * 40 + ["test"] * 4)
    split = plan(path)
    assert (split.train.rows.sum(), split.valid.rows.sum(), split.test.rows.sum()) == (36, 4, 4)
    assert not (split.train.rows & split.valid.rows).any()
    assert np.flatnonzero(split.test.rows).tolist() == [40, 41, 42, 43]


def test_without_a_column_80_10_10_with_the_same_mix(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", [None] * 200)
    split = plan(path)
    masks = [split.train.rows, split.valid.rows, split.test.rows]
    assert [int(mask.sum()) for mask in masks] == [160, 20, 20]
    assert (np.sum(masks, axis=0) == 1).all()
    assert all(mask[::2].sum() == mask[1::2].sum() for mask in masks)
    again = plan(path)
    assert (again.test.rows == split.test.rows).all()


def test_test_data_of_its_own_in_place_of_a_file_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for name in ("train.jsonl", "test.jsonl"):
        write(folder / name, [None] * 20)
    other = write(tmp_path / "other.jsonl", [None] * 6)
    split = plan(folder, other)
    assert (split.test.path, split.test.rows.sum()) == (other, 6)
    assert "other.jsonl" in split.how
    assert "test.jsonl" not in split.how


def test_test_data_of_its_own(tmp_path: Path) -> None:
    path, test = write(tmp_path / "d.jsonl", [None] * 40), write(tmp_path / "t.jsonl", [None] * 6)
    split = plan(path, test)
    assert (split.train.rows.sum(), split.valid.rows.sum()) == (36, 4)
    assert (split.test.path, split.test.rows.sum()) == (test, 6)


def test_a_folder_with_a_file_for_each_part(tmp_path: Path) -> None:
    for name, rows in (("x-train.jsonl", 20), ("x-dev.jsonl", 3), ("x-test.jsonl", 4)):
        write(tmp_path / name, [None] * rows)
    split = plan(tmp_path)
    assert [int(p.rows.sum()) for p in (split.train, split.valid, split.test)] == [20, 3, 4]
    assert split.valid.path.name == "x-dev.jsonl"
    (tmp_path / "x-dev.jsonl").unlink()
    split = plan(tmp_path)
    assert [int(p.rows.sum()) for p in (split.train, split.valid, split.test)] == [18, 2, 4]
    write(tmp_path / "other_test.jsonl", [None])
    with pytest.raises(DataError, match=r"two files of the part test, other_test.jsonl and x-test.jsonl; keep one"):
        plan(tmp_path)
    assert part_files(tmp_path.parent) == {}


def test_a_split_column_holds_within_the_file_of_a_part(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        write(tmp_path / f"{part}.jsonl", ["train", "dev", "test", "train"])
    split = plan(tmp_path)
    assert split.train.rows.tolist() == [True, False, False, True]
    assert split.valid.rows.tolist() == [False, True, False, False]
    assert split.test.rows.tolist() == [False, False, True, False]


def test_a_quick_look_takes_some_rows_of_each_part(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", [None] * 200)
    whole, some = plan(path), plan(path, limit=15)
    assert [int(p.rows.sum()) for p in (some.train, some.valid, some.test)] == [15, 15, 15]
    assert not (some.test.rows & ~whole.test.rows).any()


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        (["train", "dev", "holdout"], r"no rows to test on: the split column of .* has 'dev' \(1\), 'holdout' \(1\), "),
        (
            ["test", "a"],
            r"no rows to train on: the split column of .* has 'a' \(1\), 'test' \(1\); one must be 'train'",
        ),
    ],
)
def test_parts_that_are_missing(tmp_path: Path, splits: list[str | None], message: str) -> None:
    path = write(tmp_path / "d.jsonl", splits)
    with pytest.raises(DataError, match=message):
        plan(path)
