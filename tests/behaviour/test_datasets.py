"""Hugging Face's `datasets` in and out: folders on the command line, columns in Python."""

from pathlib import Path

import pytest

import emhrnn
from emhrnn.errors import DataError
from emhrnn.estimator import DocumentClassifier
from tests.behaviour.commands import BAD, GOOD, TINY, Cli

datasets = pytest.importorskip("datasets", reason="needs the extra: datasets")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    datasets.disable_progress_bars()
    label = datasets.ClassLabel(names=["bad", "good"])
    features = datasets.Features({"text": datasets.Value("string"), "label": label})
    rows = {"text": [f"{GOOD if i % 2 else BAD} Visit {i}." for i in range(24)], "label": [i % 2 for i in range(24)]}
    whole = datasets.Dataset.from_dict(rows, features)
    datasets.DatasetDict(whole.train_test_split(8, seed=0)).save_to_disk(tmp_path / "reviews")
    return tmp_path / "reviews"


def test_commands_read_and_write_them(cli: Cli, saved: Path, tmp_path: Path) -> None:
    run, out = tmp_path / "run", tmp_path / "labels.parquet"
    cli.ok("train", saved, "--split", "train", "--out", run, "--quiet", *TINY)
    assert emhrnn.load(run).classes == ("bad", "good")
    assert cli.ok("evaluate", run, saved, "--split", "test", "--json").json["documents"] == 8
    for _ in range(2):  # the second takes the place of the first
        cli.ok("predict", run, saved / "test", "--out", out, "--quiet")
    predicted = datasets.Dataset.from_parquet(str(out), cache_dir=str(tmp_path / "cache"))
    texts = datasets.load_from_disk(saved)["test"]["text"]
    assert predicted.column_names == ["id", "label", "p_bad", "p_good"]
    assert predicted["label"][:] == emhrnn.load(run).predict(texts)
    shares = predicted.with_format("numpy")
    assert shares["p_good"][:] == pytest.approx(emhrnn.load(run).predict_proba(texts)[:, 1], abs=1e-5)


def test_columns_are_texts_and_labels(saved: Path) -> None:
    rows = datasets.load_from_disk(saved)["train"]
    classifier = DocumentClassifier("tfidf-lr").fit(rows["text"], rows["label"])
    assert classifier.classes_.tolist() == [0, 1]
    assert classifier.score(rows["text"], rows["label"]) == 1
    added = rows.add_column("predicted", classifier.predict(rows["text"]))
    assert added["predicted"][:] == rows["label"][:]
    with pytest.raises(DataError, match=r"give its column of texts, for example table\['text'\]"):
        classifier.predict(rows)
