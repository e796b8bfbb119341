"""Tensors on disk: safetensors with a JSON note in its header, written whole or not at all, never pickle.

The note holds a checksum of itself and of the tensors: a flipped bit would change every answer, and nothing else tells.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from emhrnn.errors import CheckpointError
from emhrnn.files import write_bytes

_NOTE = "emhrnn"  # safetensors' header takes strings only, so the note is one JSON string under this key
_CHECKSUM = "checksum"


def save_tensors(path: Path, tensors: dict[str, Tensor], note: dict[str, Any]) -> None:
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
