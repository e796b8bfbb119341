"""A set is split and read once, and has the same words, classes and ids for every row."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus import Columns, Corpus
from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison import data_sets, named
from emhrnn.paper.comparison.data import (
    DataSet,
    Fold,
    Split,
    data_job,
    name_of,
    part_files,
    plan_split,
    prepare_data,
)
from emhrnn.training.config import make_config


def write_splits(path: Path, splits: list[str | None], labels: list[str] | None = None) -> Path:
    rows = [
        {"text": f"text {i}", "label": "ab"[i % 2] if labels is None else labels[i]} | ({"split": s} if s else {})
        for i, s in enumerate(splits)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plan(path: Path, test: Path | None = None, limit: tuple[int, int, int] | None = None) -> Split:
    return plan_split(DataSet("d", path, test=test, limit=limit))


def test_a_split_column_is_used(tmp_path: Path) -> None:
    path = write_splits(tmp_path / "d.jsonl", ["train", "train", "dev", "TEST", "unmatched"])
    split = plan(path)
    assert split.train.rows.tolist() == [True, True, False, False, False]
    assert split.valid.rows.tolist() == [False, False, True, False, False]
    assert split.test.rows.tolist() == [False, False, False, True, False]
    assert split.left_out == {"unmatched": 1}


def test_without_validation_rows_they_are_split_off(tmp_path: Path) -> None:
    path = write_splits(tmp_path / "d.jsonl", ["train"] * 40 + ["test"] * 4)
    split = plan(path)
    assert (split.train.rows.sum(), split.valid.rows.sum(), split.test.rows.sum()) == (36, 4, 4)
    assert not (split.train.rows & split.valid.rows).any()
    assert np.flatnonzero(split.test.rows).tolist() == [40, 41, 42, 43]


def test_without_a_column_80_10_10_with_the_same_mix(tmp_path: Path) -> None:
    path = write_splits(tmp_path / "d.jsonl", [None] * 200)
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
        write_splits(folder / name, [None] * 20)
    other = write_splits(tmp_path / "other.jsonl", [None] * 6)
    split = plan(folder, other)
    assert (split.test.path, split.test.rows.sum()) == (other, 6)
    assert "other.jsonl" in split.how
    assert "test.jsonl" not in split.how


def test_test_data_of_its_own(tmp_path: Path) -> None:
    path, test = write_splits(tmp_path / "d.jsonl", [None] * 40), write_splits(tmp_path / "t.jsonl", [None] * 6)
    split = plan(path, test)
    assert (split.train.rows.sum(), split.valid.rows.sum()) == (36, 4)
    assert (split.test.path, split.test.rows.sum()) == (test, 6)


def test_a_folder_with_a_file_for_each_part(tmp_path: Path) -> None:
    for name, rows in (("x-train.jsonl", 20), ("x-dev.jsonl", 3), ("x-test.jsonl", 4)):
        write_splits(tmp_path / name, [None] * rows)
    split = plan(tmp_path)
    assert [int(p.rows.sum()) for p in (split.train, split.valid, split.test)] == [20, 3, 4]
    assert split.valid.path.name == "x-dev.jsonl"
    (tmp_path / "x-dev.jsonl").unlink()
    split = plan(tmp_path)
    assert [int(p.rows.sum()) for p in (split.train, split.valid, split.test)] == [18, 2, 4]
    write_splits(tmp_path / "other_test.jsonl", [None])
    with pytest.raises(DataError, match=r"two files of the part test, other_test.jsonl and x-test.jsonl; keep one"):
        plan(tmp_path)
    assert part_files(tmp_path.parent) == {}


def test_a_split_column_holds_within_the_file_of_a_part(tmp_path: Path) -> None:
    for part in ("train", "valid", "test"):
        write_splits(tmp_path / f"{part}.jsonl", ["train", "dev", "test", "train"])
    split = plan(tmp_path)
    assert split.train.rows.tolist() == [True, False, False, True]
    assert split.valid.rows.tolist() == [False, True, False, False]
    assert split.test.rows.tolist() == [False, False, True, False]


def test_a_slice_takes_some_rows_of_each_part(tmp_path: Path) -> None:
    path = write_splits(tmp_path / "d.jsonl", [None] * 200)
    whole, some = plan(path), plan(path, limit=(15, 5, 100))
    assert [int(p.rows.sum()) for p in (some.train, some.valid, some.test)] == [15, 5, 20]
    assert not (some.test.rows & ~whole.test.rows).any()
    assert "at most 15, 5, 100 rows of train, valid and test, drawn with seed 0" in some.how
    (data,) = data_sets([str(path)], [], format=None, columns=Columns(), limit="15,5,100")
    assert data_job(data, make_config()).arguments["limit"] == [15, 5, 100]


@pytest.mark.parametrize("limit", ["15", "1,2", "1,2,x", "0,1,1"])
def test_a_slice_that_cannot_be_read(limit: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot read --limit '{limit}'; write most rows of each part"):
        data_sets(["a.csv"], [], format=None, columns=Columns(), limit=limit)


def test_a_slice_has_no_folds() -> None:
    with pytest.raises(ConfigError, match="--limit is about the three parts of a split, and --folds pools them"):
        data_sets(["a.csv"], [], format=None, columns=Columns(), folds=3, limit="1,1,1")


def folds_of(path: Path, count: int) -> list[Split]:
    folds = [Fold(number, count) for number in range(1, count + 1)]
    return [plan_split(DataSet("d", path, fold=fold)) for fold in folds]


def test_each_row_of_any_part_is_in_the_test_part_of_one_fold(tmp_path: Path) -> None:
    path = write_splits(tmp_path / "d.jsonl", ["train"] * 70 + ["dev"] * 10 + ["test"] * 20 + ["unmatched"] * 3)
    splits = folds_of(path, 5)
    assert np.sum([split.test.rows for split in splits], axis=0).tolist() == [1] * 100 + [0] * 3
    for split in splits:
        masks = [split.train.rows, split.valid.rows, split.test.rows]
        assert [int(mask.sum()) for mask in masks] == [72, 8, 20]
        assert np.sum(masks, axis=0).tolist() == [1] * 100 + [0] * 3
        assert split.test.rows[::2].sum() == 10  # half of the rows have each class, so half of a fold, too
        assert split.left_out == {"unmatched": 3}
        assert "all 100 rows" in split.how
        assert "the split column calls train, valid, test, pooled" in split.how
    assert all((a.test.rows == b.test.rows).all() for a, b in zip(splits, folds_of(path, 5), strict=True))


@pytest.mark.parametrize(
    ("labels", "count", "message"),
    [
        ("abab", 5, r"4 rows: too few for --folds 5"),
        ("ababac", 2, r"only one document of the class 'c'"),
    ],
)
def test_folds_that_cannot_be_made(tmp_path: Path, labels: str, count: int, message: str) -> None:
    path = write_splits(tmp_path / "d.jsonl", [None] * len(labels), list(labels))
    with pytest.raises(DataError, match=message):
        folds_of(path, count)


def test_folds_are_of_one_file_without_test_data(tmp_path: Path) -> None:
    for part in ("train", "test"):
        write_splits(tmp_path / f"{part}.jsonl", [None] * 20)
    with pytest.raises(DataError, match="has a file for each part"):
        data_job(DataSet("d", tmp_path, folds=5), make_config())
    for tests, folds, message in ((["t.csv"], 5, "--test has no use"), ([], 1, "--folds 1: at least 2")):
        with pytest.raises(ConfigError, match=message):
            data_sets(["a.csv"], tests, format=None, columns=Columns(), folds=folds)


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
    path = write_splits(tmp_path / "d.jsonl", splits)
    with pytest.raises(DataError, match=message):
        plan(path)


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(i: int, split: str, label: str, user: str = "u") -> dict[str, object]:
    return {"text": f"word{i} and more", "label": label, "split": split, "user": user, "product": "p"}


def prepared(path: Path, folder: Path) -> dict[str, object]:
    folder.mkdir(exist_ok=True)
    return prepare_data(data_job(DataSet("d", path), make_config()).given, folder)


def test_the_parts_share_classes_and_ids_of_train(tmp_path: Path) -> None:
    rows = [row(i, "train", "ab"[i % 2]) for i in range(8)] + [row(8, "dev", "b"), row(9, "test", "b", "stranger")]
    found = prepared(write(tmp_path / "d.jsonl", rows), tmp_path / "out")
    assert found["classes"] == ["a", "b"]
    assert (found["users"], found["products"], found["majority"]) == (1, 1, 0.0)
    test = Corpus.open(tmp_path / "out" / "test")
    assert test.classes == ("a", "b")
    batch = test.batch(__import__("numpy").arange(1))
    assert batch.users is not None
    assert batch.users.tolist() == [-1]  # never seen in training, so it has no number of its own
    again = prepared(tmp_path / "d.jsonl", tmp_path / "out")
    assert again == found


def test_one_class_is_refused(tmp_path: Path) -> None:
    rows = [row(i, part, "a") for i, part in enumerate(["train"] * 4 + ["dev", "test"])]
    with pytest.raises(DataError, match="all 4 documents have the class 'a'; training needs at least two classes"):
        prepared(write(tmp_path / "d.jsonl", rows), tmp_path / "out")


def test_a_class_that_only_the_test_rows_have_is_refused(tmp_path: Path) -> None:
    rows = [row(i, "train", "ab"[i % 2]) for i in range(4)] + [row(4, "dev", "a"), row(5, "test", "c")]
    with pytest.raises(DataError, match="'c'"):
        prepared(write(tmp_path / "d.jsonl", rows), tmp_path / "out")


def test_names(tmp_path: Path) -> None:
    assert named("yelp=a/b.csv") == ("yelp", Path("a/b.csv"))
    assert named("a/b.csv") == (None, Path("a/b.csv"))
    assert name_of(Path("a/reviews.jsonl.gz")) == "reviews"
    odd = tmp_path / "x=1.csv"
    odd.touch()
    assert named(str(odd)) == (None, odd)


def test_sets_and_their_test_data() -> None:
    columns = Columns(label="stars")
    one, two = data_sets(["a.csv", "b=c.csv"], ["b=t.csv"], format=None, columns=columns)
    assert (one.name, one.test, two.name, two.test, two.columns) == ("a", None, "b", Path("t.csv"), columns)
    assert data_sets(["a.csv"], ["t.csv"], format=None, columns=columns)[0].test == Path("t.csv")
    for data, tests, message in (
        (["a.csv", "b.csv"], ["t.csv"], "it is not clear whose test data t.csv is; write NAME=t.csv with one of a, b"),
        (["a.csv"], ["z=t.csv"], "test data is given for 'z', which is none of the sets a"),
        (["x/a.csv", "y/a.csv"], [], "two sets have the same name; name them apart: NAME=PATH"),
    ):
        with pytest.raises(ConfigError, match=message):
            data_sets(data, tests, format=None, columns=columns)


def test_data_that_cannot_be_split(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist; check the name"):
        data_job(DataSet("d", tmp_path / "none.csv"), make_config())
