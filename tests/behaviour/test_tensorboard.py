"""The event file, read back, holds the history's numbers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.commands import TINY, Cli


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    module: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = module.EventAccumulator(str(folder)).Reload()
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:tensorboard.*")
def test_the_event_file_holds_the_history(cli: Cli, made: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    run, small = tmp_path / "run", ("--set", "training.batch_documents=2")
    cli.ok("train", made / "reviews.csv", "--out", run, "--quiet", "--log", "tensorboard", *TINY, *small)
    first = scalars(run / "tensorboard")
    epoch = json.loads((run / "history.jsonl").read_text())
    last = 21 // 2  # of the 22 documents that are trained on, two a step
    assert first["train/loss"] == [(last, pytest.approx(epoch["train_loss"]))]
    for name, value in epoch["valid"].items():
        assert first[f"valid/{name}"] == [(last, pytest.approx(value))]
    assert first["boundaries/boundary_rate"] == [(last, pytest.approx(epoch["boundaries"]["boundary_rate"]))]
    assert [step for step, _ in first["step/loss"]] == [0, 10]
    cli.ok("train", "--out", run, "--resume", "--quiet", "--log", "tensorboard", "--set", "training.epochs=2")
    both = scalars(run / "tensorboard")
    assert [step for step, _ in both["train/loss"]] == [last, 2 * last + 1]
    assert [step for step, _ in both["step/loss"]] == [0, 10, 20]


def test_without_the_package_nothing_is_begun(cli: Cli, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.extras.installed", lambda name: name != "tensorboard")
    assert "pip install 'emhrnn[tensorboard]'" in cli.train_error(made / "reviews.csv", "--log", "tensorboard")
