"""What holds for all commands: Ctrl-C during an import, and memory that runs out."""

import signal
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from emhrnn.cli import interrupt_after_imports
from tests.behaviour.commands import Cli, write_reviews

CARELESS = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)
except BaseException:
    raise SystemExit("half loaded")
whole = True
"""


@pytest.fixture
def handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupt_after_imports()
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handler")
def test_an_interrupt_comes_after_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "careless_library.py").write_text(CARELESS)
    monkeypatch.syspath_prepend(tmp_path)

    def load() -> None:
        import_module("careless_library")
        time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        load()
    assert sys.modules["careless_library"].whole


@pytest.mark.usefixtures("handler")
def test_elsewhere_an_interrupt_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_an_ignored_interrupt_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupt_after_imports()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_memory_that_runs_out_is_no_bug_of_ours(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes")

    monkeypatch.setattr("emhrnn.api.explain_texts", fail)
    told = cli.error("explain", run, "good")
    assert "memory ran out" in told
    assert "model.ngrams" not in told


@pytest.mark.parametrize("error", ["libtorch_cpu.so: failed to map segment from shared object"])
def test_a_library_that_finds_no_room(
    error: str, cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ImportError(error)

    monkeypatch.setattr("emhrnn.scoring.score", fail)
    told = cli.error("predict", run, tmp_path / "x.csv", "--out", tmp_path / "y.csv")
    assert "memory ran out while libtorch_cpu.so was loaded" in told


def test_the_setting_that_uses_up_the_memory_is_named(cli: Cli, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "a.csv", 24)
    size = "model.word_size=1000000000"
    for model in ("em-hrnn", "hn-att"):
        settings = ["--model", model, "--set", size, "--set", "training.epochs=3"]
        told = cli.error("train", data, "--out", tmp_path / "run", "--quiet", *settings)
        assert "memory ran out" in told
        assert size in told
        assert "training.epochs" not in told
