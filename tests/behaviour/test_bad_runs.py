"""Runs and prepared corpora that are damaged, swapped or of another version."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.commands import TINY, Cli, write_reviews

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "last byte": lambda content: content[:-1],
    "garbage": lambda content: b"\x00\xff garbage \xfe" * 20,
    "json": lambda content: b"[1, 2]",
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocabulary.txt"])
def test_damaged_file_of_a_run(cli: Cli, own_run: Path, name: str, damage: str) -> None:
    path = own_run / name
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    if (name, damage) == ("config.json", "last byte"):  # only the line end is gone
        cli.ok("explain", own_run, "good")
        return
    message = cli.error("explain", own_run, "good")
    assert name in message
    assert "again" in message


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_one_flipped_bit_of_the_weights(cli: Cli, own_run: Path, share: float) -> None:
    path = own_run / "model.safetensors"
    content = bytearray(path.read_bytes())
    header = int.from_bytes(content[:8], "little") + 8
    content[header + int(share * (len(content) - header))] ^= 0x40
    path.write_bytes(bytes(content))
    message = cli.error(
        "predict", own_run, write_reviews(own_run.parent / "new.csv", 4), "--out", own_run.parent / "o.csv"
    )
    assert "model.safetensors: corrupt checkpoint (its checksum differs); copy it again or train again" in message


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocabulary.txt"])
def test_missing_file_of_a_run_and_a_pipe_in_its_place(cli: Cli, own_run: Path, name: str) -> None:
    """A pipe without a writer would be waited for, forever."""
    (own_run / name).unlink()
    assert name in cli.error("explain", own_run, "good")
    os.mkfifo(own_run / name)
    assert name in cli.error("explain", own_run, "good")


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.txt"])
def test_a_run_that_cannot_be_used_is_not_described_as_if_it_could(cli: Cli, own_run: Path, name: str) -> None:
    path = own_run / name
    path.write_bytes(path.read_bytes()[:-3])
    for options in ([], ["--card"]):
        assert name in cli.error("info", own_run, *options)
    path.unlink()
    assert name in cli.error("info", own_run)


def test_a_run_that_lost_its_history(cli: Cli, own_run: Path) -> None:
    (own_run / "history.jsonl").write_text("")
    assert "history.jsonl: corrupt (no epoch was the best); copy the run again" in cli.error(
        "train", "--out", own_run, "--resume"
    )


def change(path: Path, **values: Any) -> None:
    described = json.loads(path.read_text())
    path.write_text(json.dumps({**described, **values}))


def test_a_run_of_another_version(cli: Cli, own_run: Path) -> None:
    change(own_run / "config.json", format=99)
    message = cli.error("explain", own_run, "good")
    assert "format 99, this emhrnn reads format 1; install the matching one" in message
    assert "format 99" in cli.error("info", own_run)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"limits": None}, "missing"])
@pytest.mark.parametrize("key", ["config", "classes", "multi_label", "text", "versions", "parameters", "data"])
def test_no_change_of_the_description_is_an_internal_error(own_run: Path, cli: Cli, key: str, value: Any) -> None:
    path = own_run / "config.json"
    described = json.loads(path.read_text())
    described.pop(key)
    path.write_text(json.dumps(described if value == "missing" else {**described, key: value}))
    assert cli("info", own_run).code in (0, 2)
    assert cli("explain", own_run, "good").code in (0, 2)


def test_settings_that_do_not_fit_the_weights(cli: Cli, own_run: Path) -> None:
    config = json.loads((own_run / "config.json").read_text())["config"]
    config["model"]["word_size"] = 5
    change(own_run / "config.json", config=config)
    assert "the configuration asks for" in cli("explain", own_run, "good").err
    config["model"]["name"] = "another"
    change(own_run / "config.json", config=config)
    assert "unknown model 'another'" in cli.error("explain", own_run, "good")


def test_swapped_files(cli: Cli, own_run: Path) -> None:
    words = (own_run / "vocabulary.txt").read_text().split("\n")
    words[1], words[2] = words[2], words[1]
    (own_run / "vocabulary.txt").write_text("\n".join(words))
    assert "trained with other words or classes" in cli.error("explain", own_run, "good")
    words[1], words[2] = words[2], words[1]
    (own_run / "vocabulary.txt").write_text("\n".join([*words[:-1], "another", ""]))
    assert "do not belong together" in cli.error("explain", own_run, "good")
    (own_run / "vocabulary.txt").write_text("\n".join(words))
    change(own_run / "config.json", classes=["good", "bad"])
    assert "trained with other words or classes" in cli.error("explain", own_run, "good")


def test_weights_that_are_not_ours(cli: Cli, own_run: Path) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(2)}, own_run / "model.safetensors")
    assert "not written by emhrnn" in cli.error("explain", own_run, "good")


def test_a_flipped_digit_in_the_metrics_is_no_score(cli: Cli, own_run: Path) -> None:
    cli.ok("info", own_run)
    metrics = (own_run / "metrics.json").read_text()
    (own_run / "metrics.json").write_text(metrics.replace('"accuracy": ', '"accuracy": 1', 1))
    assert "metrics.json: corrupt" in cli.error("info", own_run)
    assert "metrics.json: corrupt" in cli.error("info", own_run, "--card")


def test_metrics_and_history_are_not_needed_to_use_a_run(cli: Cli, own_run: Path) -> None:
    (own_run / "metrics.json").write_text("{")
    (own_run / "history.jsonl").write_text("{")
    cli.ok("explain", own_run, "good")
    assert "metrics.json: corrupt" in cli.error("info", own_run)
    (own_run / "metrics.json").unlink()
    assert "saved without scores" in cli.ok("info", own_run).out


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["corpus.json", "data.arrow", "vocabulary.txt"])
def test_damaged_file_of_a_corpus(cli: Cli, run: Path, tmp_path: Path, name: str, damage: str) -> None:
    corpus = Path(shutil.copytree(run / "corpus" / "train", tmp_path / "corpus"))
    path = corpus / name
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    if (name, damage) == ("corpus.json", "last byte"):
        cli.ok("info", corpus)
        return
    assert "again" in cli.error("evaluate", run, corpus)
    assert "again" in cli.error("train", corpus, "--out", tmp_path / "x", *TINY)
    assert "again" in cli.error("info", corpus)
    assert not (tmp_path / "x").exists()


def test_a_corpus_of_another_version(cli: Cli, run: Path, tmp_path: Path) -> None:
    corpus = Path(shutil.copytree(run / "corpus" / "train", tmp_path / "corpus"))
    change(corpus / "corpus.json", version=99)
    assert "has version 99 of the corpus format" in cli.error("evaluate", run, corpus)


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"data.arrow": None}, "missing"])
@pytest.mark.parametrize("key", ["files", "classes", "text", "report", "source"])
def test_no_change_of_a_manifest_is_an_internal_error(
    cli: Cli, run: Path, tmp_path: Path, key: str, value: Any
) -> None:
    corpus = Path(shutil.copytree(run / "corpus" / "train", tmp_path / "corpus"))
    path = corpus / "corpus.json"
    described = json.loads(path.read_text())
    described.pop(key)
    path.write_text(json.dumps(described if value == "missing" else {**described, key: value}))
    assert cli("evaluate", run, corpus).code in (0, 2)
    assert cli("info", corpus).code in (0, 2)
