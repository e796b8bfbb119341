"""Arrays that are written compactly come back bit for bit; parts that do not fit together are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch import nn

from emhrnn.api import load, train
from emhrnn.errors import CheckpointError
from emhrnn.models.model import DocumentModel
from emhrnn.text import Vectors
from emhrnn.training import arrays as module
from emhrnn.training.arrays import LEAST, compacted, load_arrays, load_into, restored, save_arrays
from emhrnn.training.run import WEIGHTS, copy_model
from tests.behaviour.commands import GOOD, write_reviews

HARD = [0.0, -0.0, 1.0, 255.0, 256.0, 65535.0, 65536.0, 0.5, 1e-8, 1 / 3, 65504.0, 1e30, -2.0, np.nan, np.inf, -np.inf]


@given(
    rows=st.integers(1, 60),
    width=st.integers(1, 4),
    flat=st.booleans(),
    values=st.lists(st.sampled_from(HARD), min_size=1, max_size=len(HARD)),
    usual=st.sampled_from([0.0, 7.0, 300.0, 0.25, 0.1]),
    share=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_every_bit_comes_back(
    rows: int, width: int, flat: bool, values: list[float], usual: float, share: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    array = np.where(random.random((rows, width)) < share, random.choice(values, (rows, width)), usual)
    array = (array.ravel() if flat else array).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST", 1)
        parts = compacted(array)
    if len(parts) == 1:
        assert parts[""] is array
        return
    assert sum(part.nbytes for part in parts.values()) < array.nbytes
    again = restored(parts[""], parts.get(module.NARROW), parts[module.ROWS], array.shape)
    assert again.dtype == np.float32
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    ("values", "kind", "rest"),
    [
        (np.full((LEAST, 2), 9), np.uint8, 0),
        (np.full((LEAST, 2), 300), np.uint16, 0),
        (np.full((LEAST, 2), 0.25), np.float16, 0),
        (np.where(np.arange(LEAST)[:, None] < 10, 70_000, [[3, 4]]), np.uint8, 10),
        (np.where(np.arange(LEAST)[:, None] < 100, 1 / 3, [[0, 0]]), None, 100),
    ],
)
def test_what_it_is_written_as(values: np.ndarray, kind: Any, rest: int, tmp_path: Path) -> None:
    array = values.astype(np.float32)
    save_arrays(tmp_path / "x", {"a": array}, {"epoch": 3}, compact=True)
    written = load_file(tmp_path / "x")
    assert len(written["a"]) == rest
    assert (written["a/narrow"].dtype == kind) if kind else "a/narrow" not in written
    again, note = load_arrays(tmp_path / "x")
    assert note == {"epoch": 3}
    assert again["a"].tobytes() == array.tobytes()


def test_other_arrays_are_written_as_they_are(tmp_path: Path) -> None:
    given = {"keys": np.arange(LEAST), "few": np.zeros(LEAST - 1, np.float32), "double": np.zeros(LEAST)}
    save_arrays(tmp_path / "x", given, {}, compact=True)
    assert load_file(tmp_path / "x").keys() == given.keys()


def test_parts_that_do_not_fit(tmp_path: Path) -> None:
    array = np.where(np.arange(LEAST)[:, None] < 10, 1 / 3, np.ones((1, 2))).astype(np.float32)
    parts = {f"a{ending}": part for ending, part in compacted(array).items()}
    assert set(parts) == {"a", "a/narrow", "a/rows"}
    wrong: list[tuple[dict[str, Any], Any]] = [
        ({"a": parts["a"][:-1]}, [LEAST, 2]),
        ({"a": parts["a"].astype(np.float64)}, [LEAST, 2]),
        ({"a/narrow": parts["a/narrow"][:, :1]}, [LEAST, 2]),
        ({"a/rows": parts["a/rows"][:-1]}, [LEAST, 2]),
        ({"a/rows": parts["a/rows"].astype(np.uint16)}, [LEAST, 2]),
        ({}, [LEAST, 3]),
        ({}, [-LEAST, 2]),
        ({}, []),
        ({}, "many"),
        ({}, None),
        ({}, [LEAST, 10**9]),  # more than there is memory
    ]
    for change, shape in wrong:
        save_arrays(tmp_path / "x", {**parts, **change}, {"compact": {"a": shape}})
        with pytest.raises(CheckpointError, match="corrupt"):
            load_arrays(tmp_path / "x")
    for name in ("a", "a/rows"):
        save_arrays(tmp_path / "x", {n: p for n, p in parts.items() if n != name}, {"compact": {"a": [LEAST, 2]}})
        with pytest.raises(CheckpointError, match="missing"):
            load_arrays(tmp_path / "x")


def test_a_run_is_smaller_and_its_probabilities_are_the_same(tmp_path: Path) -> None:
    """Vectors of 16-bit floats, and counts, are most of a model of few classes."""
    data = write_reviews(tmp_path / "reviews.csv", 60)
    words = [*GOOD.lower().split(), *(f"word{i}" for i in range(3000))]
    numbers = np.random.default_rng(0).normal(size=(len(words), 20)).astype(np.float16).astype(np.float32)
    trained = train(
        data, tmp_path / "run", vectors=Vectors(words, numbers), settings={"training.epochs": 1}, progress=False
    )
    expected = trained.model.predict_proba([GOOD, "Anything else."])
    arrays, note = load_arrays(tmp_path / "run" / WEIGHTS)
    (tmp_path / "plain").mkdir()
    copy_model(tmp_path / "run", tmp_path / "plain")
    save_arrays(tmp_path / "plain" / WEIGHTS, arrays, note)  # as earlier versions wrote it
    small, large = ((tmp_path / name / WEIGHTS).stat().st_size for name in ("run", "plain"))
    assert small < 0.7 * large
    for name in ("run", "plain"):
        assert np.array_equal(load(tmp_path / name).predict_proba([GOOD, "Anything else."]), expected)


def test_round_trip_is_exact(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(3, 4), "b": torch.arange(5), "t": torch.randn(4, 3).t()}
    save_arrays(tmp_path / "x.safetensors", tensors, {"epoch": 3})
    loaded, note = load_arrays(tmp_path / "x.safetensors")
    assert note == {"epoch": 3}
    assert loaded.keys() == tensors.keys()
    assert all(torch.equal(torch.from_numpy(loaded[name]), tensors[name]) for name in tensors)


def test_missing_corrupt_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with pytest.raises(CheckpointError, match="no such file"):
        load_arrays(path)
    save_arrays(path, {"a": torch.randn(100)}, {})
    whole = path.read_bytes()
    for broken in (b"", whole[:50], whole[:-8], b"\x80\x04" + whole):  # truncated; and a pickle's first bytes
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match="corrupt checkpoint"):
            load_arrays(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="not written by emhrnn"):
        load_arrays(path)


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
