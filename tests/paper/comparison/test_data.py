"""A set is read once and has the same words, classes and ids for every row."""

import json
from pathlib import Path

import pytest

from emhrnn.corpus import Columns, Corpus
from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison.data import DataSet, data_job, data_sets, name_of, named, prepare_data
from emhrnn.training.config import make_config


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
