"""Tensors on disk, and the checkpoints that make training go on as if it had never stopped.

RUN/checkpoint/step-000001200.safetensors    tensors: model/..., optimizer/..., objective/...; counters in the note
RUN/checkpoint/step-000001100.safetensors    the one before, should the newest be damaged

Tensors are safetensors with a JSON note in the header, written whole or not at all, never pickle. The note holds a
checksum of itself and of the tensors: a flipped bit would change every answer, and nothing else would show it. The
weights of the best epoch are not in a checkpoint: they are `model.safetensors` of the run.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from emhrnn.errors import CheckpointError
from emhrnn.files import write_bytes
from emhrnn.training.compatibility import difference, fixed_settings, migrated_tensors
from emhrnn.training.config import Config

_NOTE = "emhrnn"  # safetensors' header takes strings only, so the note is one JSON string under this key
_CHECKSUM = "checksum"


def save_tensors(path: Path, tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
    """Write the tensors with a JSON note, in place of what is there."""
    contiguous = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    checked = {**note, _CHECKSUM: _sha256(contiguous, note)}
    write_bytes(path, save(contiguous, metadata={_NOTE: json.dumps(checked)}))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the note, or a CheckpointError that says what is wrong with the file."""
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; is this a folder that `emhrnn train` finished writing?")
    try:
        with safe_open(path, framework="pt") as file:
            note = json.loads((file.metadata() or {}).get(_NOTE, "null"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, ValueError) as error:
        raise CheckpointError(f"{path}: corrupt checkpoint ({error}); copy it again or train anew") from None
    if not isinstance(note, dict):
        raise CheckpointError(f"{path}: not written by emhrnn; give a run folder made by `emhrnn train`")
    expected = note.pop(_CHECKSUM, None)  # older files have none
    if expected is not None and expected != _sha256(tensors, note):
        raise CheckpointError(f"{path}: corrupt checkpoint (its checksum differs); copy it again or train anew")
    return tensors, note


def _sha256(tensors: dict[str, Tensor], note: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(note, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


@runtime_checkable
class SizedByData(Protocol):
    """A model with buffers whose sizes depend on the data that it was fitted to."""

    def take_sizes(self, tensors: Mapping[str, Tensor]) -> None:
        """Give the buffers the sizes of these saved tensors, as far as the data decide them."""


def load_into(module: torch.nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Put the tensors into the module; every name and shape must fit."""
    if isinstance(module, SizedByData):
        module.take_sizes(tensors)
    expected = module.state_dict()
    for name in expected.keys() - tensors.keys():
        raise CheckpointError(f"{path}: tensor {name} is missing; the file belongs to another model or version")
    for name in tensors.keys() - expected.keys():
        raise CheckpointError(f"{path}: unexpected tensor {name}; the file belongs to another model or version")
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise CheckpointError(
                f"{path}: {name} is {tuple(tensor.shape)}, the configuration asks for {tuple(expected[name].shape)}"
            )
    module.load_state_dict(tensors)


VERSION = 1
KEPT = 2
FOLDER = "checkpoint"
_SHARE = 0.02  # of the time, at most, is spent on checkpoints within an epoch


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(
        self,
        folder: Path,
        identity: dict[str, str],
        config: Config,
        *,
        say: Callable[[str], None] = print,
        writes: bool = True,
    ) -> None:
        """`identity` says what a checkpoint must agree with to be continued, besides the settings: checksums of words
        and data. Of several processes that train together all have the same to save, and only one `writes`."""
        self.folder = folder
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
            save_tensors(self.folder / f"step-{step:09}.safetensors", tensors, note)
            for old in checkpoint_files(self.folder)[KEPT:]:
                old.unlink()
        except OSError as error:
            remedy = "make it possible to write there, then train anew"
            if checkpoint_files(self.folder):
                remedy = "the last good one is intact: make it possible to write there, then go on with --resume"
            raise CheckpointError(f"cannot save a checkpoint to {self.folder}: {error.strerror}; {remedy}") from None
        self._saved = time.monotonic()
        self._took = self._saved - began

    def load(self, *, silent: bool = False) -> tuple[Path, dict[str, Tensor], dict[str, Any]] | None:
        """The newest good checkpoint: its file, tensors and progress; None where there is none at all.

        Raises:
            CheckpointError: it is of a newer version, or of other settings, words or data; or none can be read.
        """
        damaged = ""
        for path in checkpoint_files(self.folder):
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
                tensors = migrated_tensors(self.config.model.name, tensors, checkpoint=True)
                return path, tensors, note["progress"]
            damaged = f"{path} is damaged"
            if not silent:
                self.say(f"{damaged}; the checkpoint before it is tried")
        if damaged:
            raise CheckpointError(f"{damaged}; no other checkpoint is there: train anew with --overwrite")
        return None

    def keep_last(self) -> None:
        """Training is done: one is enough to train on from."""
        for path in checkpoint_files(self.folder)[1:]:
            path.unlink()

    def _check(self, path: Path, saved: dict[str, Any]) -> None:
        others = [what for what, ours in self.identity.items() if saved.get(what) != ours]
        told = difference(saved["settings"], self.config) or next(
            (f"other {what} than now (the checksums differ)" for what in others), None
        )
        if told is not None:
            raise CheckpointError(
                f"{path} was saved with {told}; put back what was changed, or train anew into another folder"
            )


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints, newest first."""
    return sorted(folder.glob("step-*.safetensors"), reverse=True)
