"""Settings, vectors and places to write to that cannot be used."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from emhrnn import DocumentClassifier
from emhrnn.errors import ConfigError
from tests.behaviour.commands import TINY, Cli, rows, write_reviews, write_rows


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_reviews(tmp_path / "reviews.csv", 12)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "model.name=em-hrrn"], "unknown model 'em-hrrn'; did you mean 'em-hrnn'?"),
        (["--preset", "papper"], "unknown preset 'papper'; use one of default, paper"),
        (["--set", "training.epoch=3"], "did you mean 'training.epochs'?"),
        (["--set", "training.epochs=-3"], "training.epochs = -3"),
        (["--set", "training.learning_rate=inf"], "training.learning_rate = inf: input should be a finite number"),
        (["--seed", str(10**23)], "training.seed: a number has more than 64 bits"),
        (["--set", "training.threads=100000"], "input should be less than or equal to 1024"),
        (["--set", "model.segmentation=guess"], "unknown segmentation 'guess'"),
        (["--format", "xml"], "unknown format 'xml'; give one of csv"),
        (["--split", "dev"], "has no split column"),
    ],
)
def test_unknown_names(cli: Cli, data: Path, options: list[str], told: str) -> None:
    out = data.parent / "run"
    result = cli("train", data, "--out", out, "--quiet", *TINY, *options)
    assert (result.code, result.out) == (2, "")
    assert told in result.err
    assert result.err.count("\n") == 1
    assert not out.exists()


def test_config_files(cli: Cli, data: Path, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[trainign]\nseed = 3\n")
    wrong = cli("train", data, "--out", tmp_path / "x", "--config", tmp_path / "a.toml")
    assert (wrong.code, "did you mean 'training.seed'?" in wrong.err) == (2, True)
    (tmp_path / "a.toml").write_text("[training]\nseed = 3\n")
    cli.ok("train", data, "--out", tmp_path / "run", "--config", tmp_path / "a.toml", "--quiet", *TINY)
    assert "seed 3" in " ".join(cli.ok("info", tmp_path / "run").out.split())


def test_exact_em_on_long_documents_is_refused_before_the_warm_up(cli: Cli, tmp_path: Path) -> None:
    long = " ".join(["soup"] * 30)
    data = write_rows(tmp_path / "long.csv", [(f"{long} {n}", "good") for n in range(9)] + [("Bad soup.", "bad")] * 9)
    told = cli.train_error(data, "--set", "em.estep=exact", "--set", "em.warmup_epochs=1")
    assert "30 free positions; at most 20" in told
    assert "document in row" in told
    assert "use --set em.estep=local, or blocks" in told


@pytest.mark.parametrize(
    ("setting", "instead"),
    [("class_weight = balanced", ", or weigh rows with --weight-column"), ("label_smoothing = 0.1", "")],
)
def test_what_the_loss_would_not_use_is_refused(cli: Cli, data: Path, setting: str, instead: str) -> None:
    options = ["--set", "training." + setting.replace(" ", "")]
    if setting.startswith("label_smoothing"):
        told = cli.train_error(data, "--model", "tfidf-lr", *options)
        assert f"training.{setting}, but tfidf-lr is fitted in one go, without it; leave it out\n" in told
    lists = data.parent / "lists.jsonl"
    lists.write_text("".join(json.dumps({"text": text, "labels": [label]}) + "\n" for text, label in rows(12)))
    told = cli.train_error(lists, *options)
    assert f"training.{setting} is for one label per document, the data have a list of them" in told
    assert f"leave it out{instead}\n" in told


@pytest.mark.parametrize("model", ["tfidf-lr", "tfidf-svm", "nb-lr", "sswe-svm"])
def test_data_without_a_word_that_comes_again(cli: Cli, tmp_path: Path, model: str) -> None:
    texts = [f"a{i} b{i} c{i}" for i in range(24)]
    data = write_rows(tmp_path / "a.csv", [(text, "good" if i % 2 else "bad") for i, text in enumerate(texts)])
    counted = model != "sswe-svm"  # n-grams, of which none is in two documents
    min_count = "1" if counted else "5"
    told = cli.train_error(data, "--model", model, "--set", f"data.min_count={min_count}")
    assert ("words is in 2 of the" if counted else "the vocabulary is empty") in told
    assert "give more documents, or lower data.min_count" in told


def test_vectors(cli: Cli, data: Path, tmp_path: Path) -> None:
    no_size = [
        value for pair in zip(TINY[::2], TINY[1::2], strict=True) if "embedding" not in pair[1] for value in pair
    ]

    def refused(vectors: Path, *settings: str) -> str:
        out = tmp_path / "run"
        message = cli("train", data, "--out", out, "--vectors", vectors, "--quiet", *no_size, *settings)
        assert message.code == 2
        assert message.err.count("\n") == 1
        assert not out.exists()
        return message.err

    vectors = tmp_path / "vectors.txt"
    assert "cannot read the vectors" in refused(vectors)
    vectors.write_text("")
    assert "is empty" in refused(vectors)
    vectors.write_text("good 1 2 3\nbad 1 2\n")
    assert "vectors.txt: row 2 ('bad 1 2'...)" in refused(vectors)
    vectors.write_text("good 1 2 3\nbad 1 2 nan\n")
    assert "the vector of 'bad' (word 2) is not finite" in refused(vectors)
    vectors.write_text("good 1 2 3\nbad 1 2 4\n")
    assert "embedding_size is 7 and the vectors have 3 numbers; leave it out" in refused(
        vectors, "--set", "model.embedding_size=7"
    )
    cli.ok("train", data, "--out", tmp_path / "run", "--vectors", vectors, "--quiet", *no_size)
    np.savez(tmp_path / "vectors.npz", words=np.array([{}], dtype=object), vectors=np.zeros((1, 2), np.float32))
    assert (
        "must hold the arrays" in cli("train", data, "--out", tmp_path / "x", "--vectors", tmp_path / "vectors.npz").err
    )


def test_a_run_that_is_there_is_kept_unless_told_otherwise(cli: Cli, data: Path, own_run: Path, tmp_path: Path) -> None:
    before = (own_run / "model.safetensors").read_bytes()
    command = ["train", data, "--out", own_run, "--quiet", *TINY, "--seed", "5"]
    assert "exists and is not empty; give another folder, or replace the run with --overwrite" in cli.error(*command)
    assert "lies inside" in cli.error("train", own_run / "corpus" / "train", "--out", own_run, "--overwrite")
    broken = write_reviews(tmp_path / "two.csv", 2)
    assert "too few" in cli.error("train", broken, "--out", own_run, "--overwrite", *TINY)
    assert (own_run / "model.safetensors").read_bytes() == before
    cli.ok(*command, "--overwrite")
    assert (own_run / "model.safetensors").read_bytes() != before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_places_that_cannot_take_a_run(cli: Cli, data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert "is a file, the run is to be a folder" in cli.error("train", data, "--out", tmp_path / "file", *TINY)
    assert "cannot write to" in cli.error("train", data, "--out", tmp_path / "file" / "run", *TINY)
    assert "is not a run folder, so it is not overwritten" in cli.error(
        "train", data, "--out", tmp_path / "mine", "--overwrite", *TINY
    )
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"
    (tmp_path / "empty").mkdir()
    assert "too few" in cli.error("train", write_reviews(tmp_path / "b.csv", 2), "--out", tmp_path / "empty", *TINY)
    cli.ok("train", data, "--out", tmp_path / "empty", "--quiet", *TINY)


def test_remains_of_a_run_without_weights_do_not_block(cli: Cli, data: Path, own_run: Path) -> None:
    (own_run / "model.safetensors").unlink()
    shutil.rmtree(own_run / "checkpoint")
    cli.ok("train", data, "--out", own_run, "--quiet", *TINY)


def test_places_that_cannot_take_predictions(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "test.csv", 4)
    before = data.read_bytes()
    assert "end it in .parquet, .csv, .jsonl" in cli.error("predict", run, data, "--out", tmp_path / "p.xlsx")
    assert "end it in" in cli.error("predict", run, data, "--out", tmp_path / "p")
    assert "is the data itself" in cli.error("predict", run, data, "--out", data)
    assert "cannot write" in cli.error("predict", run, data, "--out", data / "p.csv")
    (tmp_path / "folder.csv").mkdir()
    assert "is a folder" in cli.error("predict", run, data, "--out", tmp_path / "folder.csv")
    assert data.read_bytes() == before


def test_texts_that_cannot_be_explained(cli: Cli, run: Path, tmp_path: Path) -> None:
    page = tmp_path / "review.txt"
    page.write_text("good")
    assert "give one text" in cli.error("explain", run)
    assert "give one text" in cli.error("explain", run, "good", "--file", page)
    assert "has no words; give a text with at least one word" in cli.error("explain", run, " \t ")
    assert "has no words" in cli.error("explain", run, "-")
    assert f"to explain what it says, give --file {page}" in cli.error("explain", run, page)
    assert "is a folder" in cli.error("explain", run, "--file", tmp_path)
    assert "is the text itself" in cli.error("explain", run, "--file", page, "--html", page)
    assert "is a folder" in cli.error("explain", run, "good", "--html", tmp_path)


def test_a_folder_that_is_no_demo_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("{}")
    assert "is not a finished demo" in cli.error("demo", "--out", tmp_path)
    (tmp_path / "report.json").write_text('{"tfidf_accuracy": 1, "phrase_f1": 1}')
    (tmp_path / "thesis.txt").write_text("x")
    assert "is not a finished demo" in cli.error("demo", "--out", tmp_path)
    assert "is a file" in cli.error("demo", "--out", tmp_path / "thesis.txt")
    (tmp_path / "thesis.txt").unlink()
    assert "did you mean 'training.epochs'" in cli("demo", "--out", tmp_path, "--set", "training.epoch=1").err
    assert (tmp_path / "report.json").exists()


def test_a_model_that_lives_on_vectors_asks_for_them(cli: Cli, data: Path, tmp_path: Path) -> None:
    told = cli.train_error(data, "--model", "bag-of-means")
    assert "bag-of-means needs pretrained word vectors, and none were given" in told
    assert "; give --vectors FILE, in Python vectors=" in told
    with pytest.raises(ConfigError, match="needs pretrained word vectors"):
        DocumentClassifier(model="bag-of-means").fit(["good", "bad"] * 9, ["a", "b"] * 9)


def test_too_few_epochs_for_em_are_told(cli: Cli, data: Path, tmp_path: Path) -> None:
    few = ["--set", "training.epochs=2", "--set", "em.warmup_epochs=2"]
    told = cli.ok("train", data, "--out", tmp_path / "a", "--quiet", *TINY, *few)
    assert (
        "phrases were not learned: 2 epochs leave none for EM; raise training.epochs, or lower" in told.out + told.err
    )
    told = cli.ok("train", data, "--out", tmp_path / "b", "--quiet", *TINY, *few, "--set", "em.warmup_epochs=1")
    assert "not learned" not in told.out + told.err


def test_vary_without_a_section(cli: Cli, data: Path, tmp_path: Path) -> None:
    told = cli.error("tune", data, "--out", tmp_path / "t", "--vary", "foo=1:2", "--trials", "1")
    assert "cannot read --vary foo='1:2'; write section.key before the =" in told
