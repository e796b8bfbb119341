"""`--weight-column` and weights of classes, as a person uses them."""

import csv
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from emhrnn import EMHRNNClassifier
from tests.behaviour.commands import TINY, Cli, rows, write_reviews, write_rows


def write_weighted(path: Path, weights: list[str]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = [(*row, weight) for row, weight in zip(rows(len(weights)), weights, strict=True)]
        csv.writer(file).writerows([("text", "label", "importance"), *lines])
    return path


def test_weights_train_and_are_kept(cli: Cli, tmp_path: Path) -> None:
    data = write_weighted(tmp_path / "a.csv", ["1", "0.5"] * 10)
    valid = write_reviews(tmp_path / "valid.csv", 6)  # has no such column, and needs none
    weigh = ("--weight-column", "importance")
    cli.ok("train", data, "--out", tmp_path / "run", "--valid", valid, "--quiet", *TINY, *weigh)
    assert "weight = importance" in cli.ok("info", tmp_path / "run" / "corpus" / "train").out
    cli.ok("evaluate", tmp_path / "run", valid)
    cli.ok("paper", "prepare", data, "--out", tmp_path / "corpus", "--quiet", *weigh)
    cli.ok("train", tmp_path / "corpus", "--out", tmp_path / "again", "--quiet", *TINY)
    message = cli.train_error(tmp_path / "corpus", *weigh)
    assert "prepared corpus, in which the weight 'importance' cannot be chosen any more" in message


def test_a_bad_weight_names_its_row(cli: Cli, tmp_path: Path) -> None:
    data = write_weighted(tmp_path / "a.csv", ["1"] * 9 + ["-2"])
    message = cli.train_error(data, "--weight-column", "importance")
    assert "a.csv, row 10 has the weight '-2'; give every row a number from 0 to 1,000,000" in message
    assert "no weight column 'w'" in cli.train_error(data, "--weight-column", "w")


@pytest.mark.parametrize("weigh", [("--weight-column", "importance"), ("--set", "training.class_weight=balanced")])
def test_the_library_that_knows_no_weights_says_so(weigh: tuple[str, str], cli: Cli, tmp_path: Path) -> None:
    data = write_weighted(tmp_path / "a.csv", ["1"] * 20)
    message = cli.train_error(data, "--model", "fasttext", *weigh)
    assert "knows no weights of documents" in message


def test_classifier_takes_sample_weight() -> None:
    texts, labels = zip(*rows(20), strict=True)
    settings = {"model.embedding_size": 4, "model.word_size": 3, "data.min_count": 1}
    make = EMHRNNClassifier(epochs=1, settings=settings)
    plain = make.fit(texts, labels).predict_proba(texts)
    assert make.fit(texts, labels, [1] * 20).predict_proba(texts) == pytest.approx(plain, abs=1e-5)
    weights = [5.0 if label == "good" else 0.1 for label in labels]
    assert (make.fit(texts, labels, sample_weight=weights).predict_proba(texts) != plain).any()


@pytest.mark.parametrize("model", ["tfidf-lr", "tfidf-svm", "nb-lr", "sswe-svm"])
def test_balanced_classes_are_weights_of_documents(model: str, cli: Cli, tmp_path: Path) -> None:
    """Also for the models that are fitted in one go."""
    some = [(text, label) for i, (text, label) in enumerate(rows(40)) if label == "good" or i % 4 == 0]
    of_label = {label: len(some) / (2 * sum(label == other for _, other in some)) for label in ("good", "bad")}
    plain = write_rows(tmp_path / "plain.csv", some)
    weighted = tmp_path / "weighted.csv"
    with weighted.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label", "w"), *((text, label, of_label[label]) for text, label in some)])
    small = ["--model", model, "--quiet", "--valid", plain, "--set", "data.min_count=1"]
    cli.ok("train", plain, "--out", tmp_path / "a", *small, "--set", "training.class_weight=balanced")
    cli.ok("train", weighted, "--out", tmp_path / "b", *small, "--weight-column", "w")
    cli.ok("train", plain, "--out", tmp_path / "c", *small)
    of_a, of_b, of_c = (load_file(tmp_path / name / "model.safetensors") for name in "abc")
    assert all(torch.allclose(of_a[name], of_b[name], atol=1e-4) for name in of_a)
    assert not all(torch.allclose(of_a[name], of_c[name], atol=1e-3) for name in of_a)
