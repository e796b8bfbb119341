"""Where the kernels come from, and what happens where they cannot."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from emhrnn.layers import LSTM, native, pack
from tests.layers.shapes import generator_of, offsets_of


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache folder, and a process that has not loaded the kernels yet."""
    monkeypatch.setenv("EMHRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EMHRNN_NATIVE", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    native._load.cache_clear()
    yield
    native._load.cache_clear()


@pytest.mark.parametrize(
    ("variable", "value", "level", "says"),
    [
        ("EMHRNN_NATIVE", "0", logging.INFO, "EMHRNN_NATIVE=0: the pure torch layers are used"),
        ("CXX", "false", logging.WARNING, "false failed with code 1: "),
        (
            "CXX",
            "no-such-compiler",
            logging.WARNING,
            "no C++ compiler found (no-such-compiler); install one or set CXX",
        ),
        ("EMHRNN_CACHE", "/dev/null/x", logging.WARNING, "set EMHRNN_CACHE to a folder that can be written"),
    ],
)
def test_without_kernels_the_torch_layers_serve_and_one_line_says_so(
    variable: str, value: str, level: int, says: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    if variable == "EMHRNN_CACHE" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("no C++ compiler: the cache folder is never asked for")
    caplog.set_level(logging.INFO)
    lstm = LSTM(2, 3, generator=generator_of(0))
    for _ in range(3):
        lstm(torch.ones(4, 2), pack(offsets_of([3, 1]))).sum().backward()
    (record,) = caplog.records
    assert record.levelno == level
    assert says in record.getMessage()
    assert "\n" not in record.getMessage()
    assert lstm.bias.grad is not None


def test_the_switch() -> None:
    with native.native_kernels(False):
        assert native.kernels() is None
