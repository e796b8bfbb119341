"""How many of our functions lie between a command and the work it is about: each is one more place to look."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import emhrnn
from emhrnn.paper.em.steps import STRATEGIES
from tests.behaviour.commands import TINY, Cli, write_reviews

PACKAGE = str(Path(emhrnn.__file__).parent)
MOST = 6  # from `emhrnn train` to the E-step, both counted


def test_from_the_command_to_the_e_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    e_step = STRATEGIES["local"]

    def watched(*arguments: Any) -> Any:
        frames = inspect.stack(context=0)[1:]  # those of decorators, of click and of torch are not ours
        ours = [
            f"{Path(frame.filename).stem}.{frame.function}" for frame in frames if frame.filename.startswith(PACKAGE)
        ]
        calls[:] = [*reversed(ours), "the E-step"]
        return e_step(*arguments)

    monkeypatch.setitem(STRATEGIES, "local", watched)
    data = write_reviews(tmp_path / "reviews.csv", 30)
    Cli(capsys, monkeypatch).ok(
        "train",
        data,
        "--out",
        tmp_path / "run",
        "--quiet",
        *TINY,
        "--set",
        "em.warmup_epochs=0",
        "--set",
        "em.estep=local",
    )
    way = calls[calls.index("train.train") :]
    assert len(way) <= MOST, way
