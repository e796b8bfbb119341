"""A run that meets the documents it was trained on: every number would be too good, so that somebody has to say it."""

import shutil
from pathlib import Path

from tests.behaviour.commands import TINY, Cli, rows, write_reviews

TOLD = "holds documents that"


def test_scores_on_the_training_data_are_told_to_say_little(cli: Cli, made: Path, tmp_path: Path) -> None:
    known, run = shutil.copy(made / "reviews.csv", tmp_path / "moved.csv"), made / "run"
    told = cli.ok("evaluate", run, known).err
    assert f"{known} holds documents that {run} was trained on: its scores on them say little about new ones" in told
    assert TOLD not in cli.ok("evaluate", run, made / "test.jsonl").err


def test_nothing_is_calibrated_to_the_training_data(cli: Cli, made: Path, own_run: Path) -> None:
    before = (own_run / "model.safetensors").read_bytes()
    told = cli.error("calibrate", own_run, made / "reviews.csv", "--quiet")
    assert "it holds documents that the run has learned from, and is surer of than of new ones; give others" in told
    assert (own_run / "model.safetensors").read_bytes() == before


def test_validation_on_the_training_data_is_told(cli: Cli, tmp_path: Path) -> None:
    data, other = write_reviews(tmp_path / "a.csv", 24), write_reviews(tmp_path / "b.csv", 12)
    told = cli.ok("train", data, "--valid", data, "--out", tmp_path / "run", *TINY, "--quiet").err
    assert "a.csv holds documents that were trained on, too: validation says little about new ones" in told
    assert TOLD not in cli.ok("train", data, "--valid", other, "--out", tmp_path / "apart", *TINY, "--quiet").err


def test_another_split_of_the_same_file_is_new(cli: Cli, tmp_path: Path) -> None:
    data, run = tmp_path / "all.csv", tmp_path / "run"
    lines = [f'"{text}",{label},{"test" if n % 3 == 0 else "train"}\n' for n, (text, label) in enumerate(rows(36))]
    data.write_text("text,label,split\n" + "".join(lines), encoding="utf-8")
    splits = ["--split", "train", "--valid-split", "test"]
    assert TOLD not in cli.ok("train", data, *splits, "--out", run, *TINY, "--quiet").err
    assert TOLD not in cli.ok("evaluate", run, data, "--split", "test").err
    assert TOLD in cli.ok("evaluate", run, data, "--split", "train").err
    assert TOLD in cli.ok("evaluate", run, data).err
