"""Tensors on disk come back bit for bit, or the error says what is wrong with the file."""

from pathlib import Path

import pytest
import torch
from torch import nn

from emhrnn.errors import CheckpointError
from emhrnn.models.model import DocumentModel
from emhrnn.training.arrays import save_arrays
from emhrnn.training.checkpoint import load_into, load_tensors


def test_round_trip_is_exact(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 4), "b": torch.arange(5), "t": torch.randn(4, 3).t()}
    save_arrays(tmp_path / "x.safetensors", tensors, {"epoch": 3})
    loaded, note = load_tensors(tmp_path / "x.safetensors")
    assert note == {"epoch": 3}
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)


def test_missing_corrupt_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(CheckpointError, match="no such file"):
        load_tensors(path)
    save_arrays(path, {"a": torch.randn(100)}, {})
    whole = path.read_bytes()
    for broken in (b"", whole[:50], whole[:-8], b"\x80\x04" + whole):  # truncated; and a pickle's first bytes
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match="corrupt checkpoint"):
            load_tensors(path)
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="not written by emhrnn"):
        load_tensors(path)


def test_tensors_must_fit_the_module() -> None:
    module = DocumentModel()
    module.weight, module.bias = nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(2))
    good = {"weight": torch.ones(2, 3), "bias": torch.ones(2)}
    load_into(module, good, Path("x"))
    assert torch.equal(module.weight, torch.ones(2, 3))
    for bad, message in (
        ({"weight": good["weight"]}, "bias is missing"),
        ({**good, "more": torch.ones(1)}, "unexpected tensor more"),
        ({**good, "bias": torch.ones(3)}, r"bias is \(3,\), the configuration asks for \(2,\)"),
    ):
        with pytest.raises(CheckpointError, match=message):
            load_into(module, bad, Path("x"))
