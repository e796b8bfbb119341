"""The checkpoints that make training go on as if it had never stopped.

RUN/checkpoint/step-000001200.safetensors    tensors: model/..., optimizer/..., objective/...; counters in the note
RUN/checkpoint/step-000001100.safetensors    the one before, should the newest be damaged

The weights of the best epoch are not in a checkpoint: they are `model.safetensors` of the run.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from emhrnn.errors import CheckpointError
from emhrnn.models.model import DocumentModel
from emhrnn.training.arrays import check_arrays, load_arrays, save_arrays
from emhrnn.training.compatibility import difference, fixed_settings, migrated_tensors
from emhrnn.training.config import Config
from emhrnn.training.folder import checkpoint_files
from emhrnn.training.run import CHECKPOINTS


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the note of a file, or a CheckpointError that says what is wrong with it."""
    arrays, note = load_arrays(path)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}, note


def load_into(model: DocumentModel, arrays: Mapping[str, Any], path: Path) -> None:
    """Put arrays, or tensors, into the model; every name and shape must fit."""
    tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    model.take_sizes(tensors)
    check_arrays(path, tensors, {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()})
    model.load_state_dict(tensors)


VERSION = 1
KEPT = 2
_SHARE = 0.02  # of the time, at most, is spent on checkpoints within an epoch


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(
        self,
        out: Path,
        identity: dict[str, str],
        config: Config,
        *,
        say: Callable[[str], None] = print,
        writes: bool = True,
    ) -> None:
        """`identity` says what a checkpoint must agree with to be continued, besides the settings: checksums of words
        and data. Of several processes that train together all have the same to save, and only one `writes`."""
        self.out, self.folder = out, out / CHECKPOINTS
        self.identity = identity
        self.config = config
        self.say = say
        self.writes = writes
        self._saved = time.monotonic()
        self._took = 0.0

    @property
    def due(self) -> bool:
        """Only a matter of time: when checkpoints are saved has no influence on what is learned."""
        seconds = self.config.training.checkpoint_seconds
        pause = max(seconds, self._took / _SHARE if seconds else 0.0)
        return self.writes and time.monotonic() - self._saved >= pause

    def save(self, step: int, tensors: dict[str, Tensor], progress: dict[str, Any]) -> None:
        """Keep what training is made of after so many steps: tensors, and `progress` as plain values.

        Raises:
            CheckpointError: it cannot be written; those that are there stay as they are.
        """
        if not self.writes:
            return
        began = time.monotonic()
        identity = {**self.identity, "settings": fixed_settings(self.config)}
        note = {"version": VERSION, "identity": identity, "progress": progress}
        try:
            save_arrays(self.folder / f"step-{step:09}.safetensors", tensors, note)
            for old in checkpoint_files(self.out)[KEPT:]:
                old.unlink()
        except OSError as error:
            remedy = "make it possible to write there, then give the same command again"
            if checkpoint_files(self.out):
                remedy = "the last good one is intact: make it possible to write there, then resume with --resume"
            raise CheckpointError(f"cannot save a checkpoint to {self.folder}: {error.strerror}; {remedy}") from None
        self._saved = time.monotonic()
        self._took = self._saved - began

    def load(self, *, silent: bool = False) -> tuple[Path, dict[str, Tensor], dict[str, Any]] | None:
        """The newest good checkpoint: its file, tensors and progress; None where there is none at all.

        Raises:
            CheckpointError: it is of a newer version, or of other settings, words or data; or none can be read.
        """
        damaged = ""
        for path in checkpoint_files(self.out):
            try:
                tensors, note = load_tensors(path)
            except CheckpointError:
                note = {}
            version = note.get("version")
            if isinstance(version, int) and version > VERSION:
                raise CheckpointError(
                    f"{path} has version {version} of the checkpoint format, this emhrnn reads version {VERSION}; "
                    "install the emhrnn that wrote it"
                )
            if version == VERSION:
                self._check(path, note["identity"])
                now = migrated_tensors(self.config.model.name, tensors, checkpoint=True)
                tensors = {name: torch.as_tensor(array) for name, array in now.items()}
                return path, tensors, note["progress"]
            damaged = f"{path} is damaged"
            if not silent:
                self.say(f"{damaged}; the checkpoint before it is tried")
        if damaged:
            raise CheckpointError(f"{damaged}; no other checkpoint is there: train again with --overwrite")
        return None

    def _check(self, path: Path, saved: dict[str, Any]) -> None:
        others = [what for what, ours in self.identity.items() if saved.get(what) != ours]
        told = difference(saved["settings"], self.config) or next(
            (f"other {what} than now (the checksums differ)" for what in others), None
        )
        if told is not None:
            raise CheckpointError(
                f"{path} was saved with {told}; put back what was changed, or train again into another folder"
            )
