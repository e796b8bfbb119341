"""Named arrays on disk: safetensors with a JSON note in the header, written whole or not at all, never pickle.

The note holds a checksum of itself and of the arrays: a flipped bit would change every answer, and nothing else would
show it.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from emhrnn.errors import CheckpointError
from emhrnn.files import write_bytes

_NOTE = "emhrnn"  # safetensors' header takes strings only, so the note is one JSON string under this key
_CHECKSUM = "checksum"


def save_arrays(path: Path, arrays: Mapping[str, Any], note: dict[str, Any]) -> None:
    """Write arrays, or tensors without a gradient, with a JSON note, in place of what is there."""
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    checked = {**note, _CHECKSUM: _sha256(contiguous, note)}
    write_bytes(path, save(contiguous, metadata={_NOTE: json.dumps(checked)}))


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the note, or a CheckpointError that says what is wrong with the file."""
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; is this a folder that `emhrnn train` finished writing?")
    try:
        with safe_open(path, framework="np") as file:
            note = json.loads((file.metadata() or {}).get(_NOTE, "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}; correct that, and try again") from None
    except (SafetensorError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: corrupt checkpoint ({error}); copy it again or train anew") from None
    if not isinstance(note, dict):
        raise CheckpointError(f"{path}: not written by emhrnn; give a run folder made by `emhrnn train`")
    expected = note.pop(_CHECKSUM, None)  # older files have none
    if expected is not None and expected != _sha256(arrays, note):
        raise CheckpointError(f"{path}: corrupt checkpoint (its checksum differs); copy it again or train anew")
    return arrays, note


def check_arrays(path: Path, arrays: Mapping[str, Any], expected: Mapping[str, tuple[int, ...]]) -> None:
    """Raise a CheckpointError unless every name is there, no other one is, and shapes are as expected."""
    for name in expected.keys() - arrays.keys():
        raise CheckpointError(f"{path}: tensor {name} is missing; the file belongs to another model or version")
    for name in arrays.keys() - expected.keys():
        raise CheckpointError(f"{path}: unexpected tensor {name}; the file belongs to another model or version")
    for name, array in arrays.items():
        if tuple(array.shape) != expected[name]:
            raise CheckpointError(
                f"{path}: {name} is {tuple(array.shape)}, the configuration asks for {expected[name]}"
            )


def _sha256(arrays: dict[str, np.ndarray], note: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(note, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} torch.{array.dtype} {array.shape}".encode())  # as files of version 0.1 have it
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
