"""Checkpoints: everything that changes while a model is trained, so that training goes on as if it had never stopped.

RUN/checkpoint/step-000001200.safetensors    tensors: model/..., optimizer/..., objective/...; counters in the note
RUN/checkpoint/step-000001100.safetensors    the one before, should the newest be damaged

A file appears whole or not at all, and its checksum is in its note. The weights of the best epoch are not in it: they
are `model.safetensors` of the run.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from emhrnn.errors import CheckpointError
from emhrnn.training.checkpoint import load_into, load_tensors, save_tensors
from emhrnn.training.config import Config
from emhrnn.training.fixed import difference, fixed_settings
from emhrnn.training.history import Epoch
from emhrnn.training.meter import Meter
from emhrnn.training.objective import Objective
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.state import Best, Position

VERSION = 1
KEPT = 2
FOLDER = "checkpoint"
_SHARE = 0.02  # of the time, at most, is spent on checkpoints within an epoch


@dataclass
class Progress:
    """Everything that changes while a model is trained; random numbers follow from the position."""

    model: nn.Module
    objective: Objective
    optimizer: Optimizer
    meter: Meter
    position: Position = field(default_factory=Position)
    best: Best = field(default_factory=Best)
    epochs: list[Epoch] = field(default_factory=list)

    def tensors(self) -> dict[str, Tensor]:
        parts = {
            "model": self.model.state_dict(),
            "objective": self.objective.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }
        return {f"{part}/{name}": tensor for part, state in parts.items() for name, tensor in state.items()}

    def note(self) -> dict[str, Any]:
        return {
            "position": asdict(self.position),
            "best": asdict(self.best),
            "epochs": [epoch.to_dict() for epoch in self.epochs],
            "meter": self.meter.state(),
        }

    def restore(self, tensors: dict[str, Tensor], note: dict[str, Any], path: Path) -> None:
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "objective": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        load_into(self.model, parts["model"], path)
        self.objective.load_state_dict(parts["objective"])
        self.optimizer.load_state_dict(parts["optimizer"])
        self.position.__dict__.update(note["position"])  # in place: the loop holds the same object
        self.best = Best(**note["best"])
        self.epochs = [Epoch(**epoch) for epoch in note["epochs"]]
        self.meter.load_state(note["meter"], self.epochs)


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(
        self,
        folder: Path,
        identity: dict[str, str],
        config: Config,
        *,
        seconds: float = 60.0,
        say: Callable[[str], None] = print,
        writes: bool = True,
    ) -> None:
        """`identity` says what a checkpoint must agree with to be continued, besides the settings: checksums of words
        and data. Of several processes that train together all have the same to save, and only one `writes`."""
        self.folder = folder
        self.identity = identity
        self.config = config
        self.seconds = seconds
        self.say = say
        self.writes = writes
        self._saved = time.monotonic()
        self._took = 0.0

    @property
    def due(self) -> bool:
        """Only a matter of time: when checkpoints are saved has no influence on what is learned."""
        pause = max(self.seconds, self._took / _SHARE if self.seconds else 0.0)
        return self.writes and time.monotonic() - self._saved >= pause

    def save(self, progress: Progress) -> None:
        """Raises:
        CheckpointError: it cannot be written; those that are there stay as they are.
        """
        if not self.writes:
            return
        began = time.monotonic()
        tensors, note = progress.tensors(), progress.note()
        path = self.folder / f"step-{progress.position.step:09}.safetensors"
        identity = {**self.identity, "settings": fixed_settings(self.config)}
        described = {"version": VERSION, "identity": identity, "progress": note}
        try:
            save_tensors(path, tensors, described)
            for old in files(self.folder)[KEPT:]:
                old.unlink()
        except OSError as error:
            remedy = "make it possible to write there, then train anew"
            if files(self.folder):
                remedy = "the last good one is intact: make it possible to write there, then go on with --resume"
            raise CheckpointError(f"cannot save a checkpoint to {self.folder}: {error.strerror}; {remedy}") from None
        self._saved = time.monotonic()
        self._took = self._saved - began

    def load(self, progress: Progress) -> bool:
        """Put the newest good checkpoint into `progress`; False where there is none at all.

        Raises:
            CheckpointError: it is of a newer version, or of other settings, words or data; or none can be read.
        """
        found = self._newest(self.say)
        if found is None:
            return False
        path, tensors, note = found
        progress.restore(tensors, note["progress"], path)
        return True

    def check(self) -> None:
        """Raise what `load` would raise, before anything of the run is touched."""
        self._newest(lambda _: None)

    def _newest(self, say: Callable[[str], None]) -> tuple[Path, dict[str, Tensor], dict[str, Any]] | None:
        """The newest good one: file, tensors, note."""
        damaged = ""
        for path in files(self.folder):
            try:
                tensors, note = _read(path)
            except _DamagedError as error:
                damaged = str(error)
                say(f"{damaged}; the checkpoint before it is tried")
                continue
            self._check(path, note)
            return path, tensors, note
        if damaged:
            raise CheckpointError(f"{damaged}; no other checkpoint is there: train anew with --overwrite")
        return None

    def keep_last(self) -> None:
        """Training is done: one is enough to train on from."""
        for path in files(self.folder)[1:]:
            path.unlink()

    def _check(self, path: Path, note: dict[str, Any]) -> None:
        saved = note["identity"]
        others = [what for what, ours in self.identity.items() if saved.get(what) != ours]
        told = difference(saved["settings"], self.config) or next(
            (f"other {what} than now (the checksums differ)" for what in others), None
        )
        if told is not None:
            raise CheckpointError(
                f"{path} was saved with {told}; put back what was changed, or train anew into another folder"
            )


def files(folder: Path) -> list[Path]:
    """The checkpoints, newest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)


class _DamagedError(Exception):
    pass


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        tensors, note = load_tensors(path)
    except CheckpointError:
        raise _DamagedError(f"{path} is damaged") from None
    version = note.get("version")
    if isinstance(version, int) and version > VERSION:
        raise CheckpointError(
            f"{path} has version {version} of the checkpoint format, this emhrnn reads version {VERSION}; "
            "install the emhrnn that wrote it"
        )
    if version != VERSION:
        raise _DamagedError(f"{path} is damaged")
    return tensors, note
