"""Arrays on disk: a safetensors file with a JSON note in its header and a checksum of everything in it.

Weights are written compactly, without loss: an array of 32-bit numbers may be split by rows. Rows that are the same bit
for bit as 8-bit or 16-bit integers or as 16-bit floats are written so, and rows of zeros are not written at all.

    NAME           the other rows, as they are
    NAME/narrow    the rows of the smaller kind, in their order; missing where they are zeros
    NAME/rows      one bit per row, 1 for those that are not in NAME; in the note, `compact` has the shape of the array
"""

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from emhrnn.errors import CheckpointError
from emhrnn.files import from_json, write_bytes

if TYPE_CHECKING:
    from emhrnn.models.model import DocumentModel

NARROW, ROWS = "/narrow", "/rows"
SMALLER = (np.uint8, np.uint16, np.float16)
LEAST = 1024  # numbers of an array that is worth it
MOST = 50  # times that an array may be larger than what is written of it: a small file must not take all memory
_NOTE = "emhrnn"  # safetensors' header takes strings only, so the note is one JSON string under this key
_CHECKSUM, _COMPACT = "checksum", "compact"


def save_arrays(path: Path, arrays: Mapping[str, Any], note: dict[str, Any], *, compact: bool = False) -> None:
    """Write arrays, or tensors without a gradient, with a JSON note, in place of what is there."""
    written = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    if compact:
        parts = {name: compacted(array) for name, array in written.items()}
        shapes = {name: written[name].shape for name, split in parts.items() if len(split) > 1}
        written = {name + ending: part for name, split in parts.items() for ending, part in split.items()}
        note = {**note, _COMPACT: shapes}
    note = {**note, _CHECKSUM: _sha256(written, note)}
    write_bytes(path, save(written, metadata={_NOTE: json.dumps(note)}))


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the note, or a CheckpointError that says what is wrong with the file."""
    if not path.is_file():
        raise CheckpointError(f"{path}: no such file; is this a folder that `emhrnn train` finished writing?")
    try:
        with safe_open(path, framework="np") as file:
            note = from_json((file.metadata() or {}).get(_NOTE, "null"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}; correct that, and try again") from None
    except (SafetensorError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: corrupt checkpoint ({error}); copy it again or train again") from None
    if not isinstance(note, dict):
        raise CheckpointError(f"{path}: not written by emhrnn; give a run folder made by `emhrnn train`")
    expected = note.pop(_CHECKSUM, None)  # older files have none
    if expected is not None and expected != _sha256(arrays, note):
        raise CheckpointError(f"{path}: corrupt checkpoint (its checksum differs); copy it again or train again")
    try:
        for name, shape in note.pop(_COMPACT, {}).items():
            split = {ending: arrays.pop(name + ending, None) for ending in ("", NARROW, ROWS)}
            arrays[name] = restored(split[""], split[NARROW], split[ROWS], tuple(map(int, shape)))
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{path}: corrupt checkpoint ({error}); copy it again or train again") from None
    return arrays, note


def compacted(array: np.ndarray) -> dict[str, np.ndarray]:
    """The parts of an array by the endings of their names: only the array itself where nothing is gained."""
    if array.dtype != np.float32 or array.size < LEAST:
        return {"": array}
    rows = array.reshape(len(array), -1)
    zeros = ~rows.view(np.uint32).any(axis=1)
    best, size = {"": array}, array.nbytes
    for kind in (None, *SMALLER):
        if kind is None:
            these, narrow = zeros, {}
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is not taken
                values = rows.astype(kind)
            these = (values.astype(np.float32).view(np.uint32) == rows.view(np.uint32)).all(axis=1)
            narrow = {NARROW: values[these].reshape(-1, *array.shape[1:])}
        parts = {"": array[~these], **narrow, ROWS: np.packbits(these)}
        if size > (now := sum(part.nbytes for part in parts.values())) and array.nbytes <= MOST * now:
            best, size = parts, now
    return best


def restored(
    others: np.ndarray | None, narrow: np.ndarray | None, bits: np.ndarray | None, shape: tuple[int, ...]
) -> np.ndarray:
    """The array that `compacted` split.

    Raises:
        ValueError: the parts do not fit together.
    """
    if others is None or bits is None or bits.dtype != np.uint8 or bits.shape != (-(-shape[0] // 8),):
        raise ValueError("a part of a compact array is missing or damaged")
    parts = [part for part in (others, narrow, bits) if part is not None]
    if 4 * math.prod(shape) > MOST * sum(part.nbytes for part in parts):
        raise ValueError("a compact array is too large for its file")
    these = np.unpackbits(bits, count=shape[0]).astype(bool)
    array = np.zeros(shape, dtype=np.float32)
    array[~these] = _fitting(others, len(these) - int(these.sum()), shape)
    if narrow is not None:
        array[these] = _fitting(narrow, int(these.sum()), shape)
    return array


def _fitting(part: np.ndarray, rows: int, shape: tuple[int, ...]) -> np.ndarray:
    if part.dtype not in (np.float32, *SMALLER) or part.shape != (rows, *shape[1:]):
        raise ValueError(f"a part of a compact array is {part.dtype} {part.shape}")
    return part


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


def load_into(model: "DocumentModel", arrays: Mapping[str, Any], path: Path) -> None:
    """Put arrays, or tensors, into the model; every name and shape must fit."""
    import torch  # here: most who read arrays need no torch

    tensors = {name: torch.as_tensor(array) for name, array in arrays.items()}
    model.take_sizes(tensors)
    check_arrays(path, tensors, {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()})
    model.load_state_dict(tensors)


def _sha256(arrays: dict[str, np.ndarray], note: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(note, sort_keys=True).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} torch.{array.dtype} {array.shape}".encode())  # as files of version 0.1 have it
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
