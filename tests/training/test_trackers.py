"""Numbers of a training reach MLflow, Weights & Biases and trackers of others, by one small interface."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import emhrnn
from emhrnn.errors import ConfigError
from emhrnn.training import progress
from emhrnn.training.progress import Tracker
from tests.behaviour.commands import TINY, Cli

Number = tuple[str, float, int]


class Kept(Tracker):
    def __init__(self) -> None:
        self.numbers: list[Number] = []
        self.closed = 0

    def write(self, name: str, value: float, step: int) -> None:
        self.numbers.append((name, value, step))

    def close(self) -> None:
        self.closed += 1


def stand_in(kept: Kept) -> dict[str, Any]:
    """The small part of both libraries that is used."""
    mlflow = SimpleNamespace(
        start_run=lambda run_name: run_name,
        log_metric=lambda name, value, step: kept.write(name, value, step),
        end_run=kept.close,
    )
    run = SimpleNamespace(log=lambda numbers, step: [kept.write(*n, step) for n in numbers.items()], finish=kept.close)
    return {"mlflow": mlflow, "wandb": SimpleNamespace(init=lambda name: run)}


@pytest.mark.parametrize("name", ["mlflow", "wandb"])
def test_numbers_reach_the_service(
    cli: Cli, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kept = Kept()
    monkeypatch.setitem(sys.modules, name, stand_in(kept)[name])
    monkeypatch.setattr(progress, "need", lambda *_: None)
    cli.ok("train", made / "reviews.csv", "--out", tmp_path / "run", "--quiet", "--log", name, *TINY)
    epoch = json.loads((tmp_path / "run" / "history.jsonl").read_text())
    found = {number[0]: number[1] for number in kept.numbers}
    assert found["train/loss"] == epoch["train_loss"]
    assert found["valid/accuracy"] == epoch["valid"]["accuracy"]
    assert "step/loss" in found
    assert kept.closed == 1


def test_a_tracker_of_ones_own(made: Path, tmp_path: Path) -> None:
    kept = Kept()
    config = emhrnn.load(made / "run").run.config
    emhrnn.train(made / "reviews.csv", tmp_path / "run", config=config, progress=False, log=[kept])
    assert {"valid/loss", "train/loss"} <= {name for name, _, _ in kept.numbers}
    assert kept.closed == 1
    more, again = Kept(), {"training.threads": 1}
    emhrnn.train(made / "reviews.csv", tmp_path / "a", settings=again, progress=False)
    emhrnn.train(made / "reviews.csv", tmp_path / "b", start=tmp_path / "a", progress=False, log=[more])
    assert {"valid/loss", "train/loss"} <= {name for name, _, _ in more.numbers}


def test_what_cannot_be_logged_to(cli: Cli, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "mlflow or wandb" in cli.train_error(made / "reviews.csv", "--log", "paper")
    monkeypatch.setattr("emhrnn.extras.installed", lambda _: False)
    with pytest.raises(ConfigError, match=r"emhrnn\[wandb\]"):
        progress.tracker("wandb", tmp_path)
