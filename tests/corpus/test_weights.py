"""Weights of documents: read from a column that is named, checked, and kept with the corpus."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn.corpus import Columns, Corpus, prepare
from emhrnn.errors import DataError

WEIGHED = Columns(weight="w")


def write(path: Path, weights: list[Any]) -> Path:
    rows = "".join(f"word{i} here,{'ab'[i % 2]},{weight}\n" for i, weight in enumerate(weights))
    path.write_text("text,label,w\n" + rows, encoding="utf-8")
    return path


def test_weights_follow_their_documents(tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", [2, "0.5", 0, "1e2"])
    prepare(data, tmp_path / "corpus", columns=WEIGHED, progress=False)
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.weights is not None
    assert corpus.weights.tolist() == [2, 0.5, 0, 100]
    view = corpus.select(np.array([3, 0]))
    batch = view.batch(np.array([1, 0]))
    assert batch.weights is not None
    assert batch.weights.dtype == np.float32
    assert batch.weights.tolist() == [2, 100]
    assert corpus.report.columns["weight"] == "w"


def test_a_column_that_is_not_named_is_no_weight(tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", [2, 3])
    data.write_text(data.read_text().replace("label,w", "label,weight"))
    corpus = prepare(data, tmp_path / "corpus", progress=False)
    assert corpus.weights is None
    assert corpus.batch(np.array([0])).weights is None


@pytest.mark.parametrize("weight", ["-1", "nan", "inf", "", "heavy", "1e9"])
def test_bad_weights_are_refused_with_their_row(tmp_path: Path, weight: str) -> None:
    data = write(tmp_path / "a.csv", [1, weight])
    with pytest.raises(DataError, match=rf"a\.csv, row 2 has the weight '{weight}'; give every row a number from 0"):
        prepare(data, tmp_path / "corpus", columns=WEIGHED, progress=False)
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize("value", ["true", "null", "[1]", '"x"'])
def test_bad_weights_in_json(tmp_path: Path, value: str) -> None:
    data = tmp_path / "a.jsonl"
    data.write_text('{"text": "x", "label": "a", "w": ' + value + "}\n")
    with pytest.raises(DataError, match="row 1 has the weight"):
        prepare(data, tmp_path / "corpus", columns=WEIGHED, progress=False)


def test_the_column_must_be_there(tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", [1])
    with pytest.raises(DataError, match=r"no weight column 'W'.*has the columns 'text', 'label', 'w'"):
        prepare(data, tmp_path / "corpus", columns=Columns(weight="W"), progress=False)
    (tmp_path / "b.ss").write_text("u\t\tp\t\t1\t\tgood food <sssss>\n")
    with pytest.raises(DataError, match=r"b\.ss is read as tang, which has no weight column 'w'; give csv"):
        prepare(tmp_path / "b.ss", tmp_path / "corpus", columns=WEIGHED, progress=False)


def test_texts_in_memory() -> None:
    corpus = Corpus.from_texts(["x", "y"], ["a", "b"], weights=[0, 2])
    assert corpus.weights is not None
    assert corpus.weights.tolist() == [0, 2]
    with pytest.raises(DataError, match="2 texts and 1 weights; give one weight per text"):
        Corpus.from_texts(["x", "y"], ["a", "b"], weights=[1])
    with pytest.raises(DataError, match="the texts, row 2 has the weight -1"):
        Corpus.from_texts(["x", "y"], ["a", "b"], weights=[1, -1])


def test_training_needs_two_classes_that_count() -> None:
    with pytest.raises(DataError, match="all 2 documents have the class 'a'"):
        Corpus.from_texts(["x", "y", "z"], ["a", "b", "a"], weights=[1, 0, 1]).check_trainable()
    with pytest.raises(DataError, match="all documents have the weight 0; give"):
        Corpus.from_texts(["x", "y"], ["a", "b"], weights=[0, 0]).check_trainable()
