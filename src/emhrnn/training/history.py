"""What happened in each epoch: one JSON object per line of history.jsonl, appended as it happens."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from emhrnn.errors import CheckpointError
from emhrnn.files import write_text


@dataclass(frozen=True)
class Epoch:
    epoch: int
    phase: str
    train_loss: float
    learning_rate: float
    valid: dict[str, float]  # accuracy, macro_f1, loss, ece
    words_per_second: float
    seconds: float
    waiting: float  # share of the time spent waiting for data
    boundaries: dict[str, float] = field(default_factory=dict)  # the degeneracy monitor
    best: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def write(path: Path, epochs: list[Epoch]) -> None:
    """All of it, in place of what is there."""
    write_text(path, "".join(map(_line, epochs)))


def append(path: Path, epoch: Epoch) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(_line(epoch))
        file.flush()
        os.fsync(file.fileno())


def _line(epoch: Epoch) -> str:
    return json.dumps(epoch.to_dict(), allow_nan=False) + "\n"


def read(path: Path) -> list[Epoch]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Epoch(**json.loads(line)) for line in lines if line]
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); copy the run again or train anew") from None
