"""Few documents and many classes with the defaults, and what the scores are worth."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus.reviews import generate_reviews
from tests.behaviour.commands import Cli, write_rows

TFIDF, MAJORITY = "TF-IDF + linear SVM", "majority class"


def reviews(count: int, seed: int) -> list[tuple[str, str]]:
    return [(review.text, review.label) for review in generate_reviews(count, seed)]


def many_classes(count: int, seed: int, classes: int = 150) -> list[tuple[str, str]]:
    """Documents with three of the eight words of their class, two of any class, and frequent words."""
    rng = np.random.default_rng(seed)
    frequent = 1 / np.arange(1, 501)
    drawn = []
    for row in range(count):
        own = [row % classes] * 3 + rng.integers(classes, size=2).tolist()
        words = [f"k{c}x{rng.integers(8)}" for c in own]
        words += [f"w{word}" for word in rng.choice(500, 9, p=frequent / frequent.sum())]
        drawn.append((" ".join(rng.permutation(words)) + ".", f"c{row % classes:03}"))
    return drawn


@pytest.mark.parametrize(
    ("train", "test"),
    [
        pytest.param(reviews(300, 2), reviews(600, 9), id="300 rows"),
        pytest.param(many_classes(1200, 30), many_classes(1500, 70), id="150 classes"),
    ],
)
def test_the_defaults_are_not_below_tfidf(
    cli: Cli, tmp_path: Path, train: list[tuple[str, str]], test: list[tuple[str, str]]
) -> None:
    data, held_out = write_rows(tmp_path / "train.csv", train), write_rows(tmp_path / "test.csv", test)
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet", "--set", "training.threads=1")
    scores = cli.ok("evaluate", tmp_path / "run", held_out, "--json").json
    assert scores["accuracy"] >= scores["baselines"][TFIDF]


def test_few_documents_have_their_own_defaults_unless_settings_say_otherwise(cli: Cli, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.csv", [(f"{w} soup {i}.", w) for i in range(20) for w in ("good", "bad")])
    told = cli.ok("train", data, "--out", tmp_path / "run", "--set", "model.encoder_size=4").err
    (line,) = [line for line in told.splitlines() if line.startswith("Defaults that suit the data: ")]
    assert "training.epochs=24" in line
    assert "encoder_size" not in line


@pytest.mark.parametrize(("classes", "given", "told"), [(10, (), False), (11, (), True), (11, ("0.5",), False)])
def test_repeated_words_count_more_with_many_classes(
    cli: Cli, tmp_path: Path, classes: int, given: tuple[str, ...], told: bool
) -> None:
    data = write_rows(tmp_path / "a.csv", [(f"The soup of c{i % classes}.", f"c{i % classes}") for i in range(66)])
    quick = ("--set", "training.epochs=1", "--set", "data.folds=0", "--set", "training.threads=1")
    presence = [part for value in given for part in ("--set", f"model.presence={value}")]
    result = cli.ok("train", data, "--out", tmp_path / "run", *quick, *presence)
    assert ("model.presence=0.3" in result.err) == told


def test_balanced_training_keeps_the_epoch_of_the_best_macro_f1(cli: Cli, tmp_path: Path) -> None:
    """The validation loss counts documents, not classes: it would keep an epoch that never predicts the rare class."""
    rows = [(f"The {w} room of number {i}.", "b" if w == "cold" else "a") for i in range(80) for w in ("warm", "calm")]
    rows += [(f"The cold room of number {i}.", "b") for i in range(8)]
    data = write_rows(tmp_path / "a.csv", rows)
    balanced = ("--set", "training.class_weight=balanced", "--set", "training.threads=1")
    told = cli.ok("train", data, "--out", tmp_path / "run", *balanced)
    assert "training.metric=macro_f1" in told.err
    assert "(highest validation macro-F1)" in told.out
    told = cli.ok("train", data, "--out", tmp_path / "loss", *balanced, "--set", "training.metric=loss")
    assert "(lowest validation loss)" in told.out


def test_scores_are_shown_beside_simple_systems(cli: Cli, tmp_path: Path) -> None:
    """A model that always says the same is seen for what it is."""
    rows = [(f"Fine soup at {i}.", "good") for i in range(90)] + [(f"Cold soup at {i}.", "bad") for i in range(10)]
    data = write_rows(tmp_path / "a.csv", rows)
    told = cli.ok("train", data, "--out", tmp_path / "run", "--quiet", "--set", "training.epochs=1")
    assert f"For comparison: {MAJORITY} 90.0 %, {TFIDF} 100.0 %." in told.out
    told = cli.ok("evaluate", tmp_path / "run", data)
    assert f"90.0 % {MAJORITY}" in told.out
    assert f"100.0 % {TFIDF}" in told.out
    lines = [line.split() for line in told.out.splitlines()]
    assert ["class", "documents", "precision", "recall", "F1", "AUC", "AP"] in lines
    for name, support in (("good", "90"), ("bad", "10")):
        assert any(line[:2] == [name, support] for line in lines)


def test_several_labels_are_shown_beside_simple_systems(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    kinds = [(("soup", "wine"), ("soup",), ("soup", "wine"), ("wine",))[i % 4] for i in range(80)]
    rows = [{"text": f"Fine {' and '.join(some)} at {i}.", "label": [*some, "all"]} for i, some in enumerate(kinds)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = cli.ok("train", path, "--out", tmp_path / "run", "--quiet", "--set", "training.epochs=1")
    assert f"{TFIDF} 100.0 %." in told.out
    told = cli.ok("evaluate", tmp_path / "run", path)
    assert "50.0 % commonest set of labels" in told.out
    assert f"100.0 % {TFIDF}" in told.out
    path.write_text("".join(f'{{"text": "Soup number {i}.", "label": ["a", "b"]}}\n' for i in range(20)))
    told = cli.ok("train", path, "--out", tmp_path / "same", "--quiet", "--set", "training.epochs=1")
    assert "For comparison: commonest set of labels 100.0 %." in told.out
