"""Ctrl-C in the middle of an import."""

import signal
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from emhrnn.cli.interrupting import interrupt_after_imports

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
def test_it_comes_after_the_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "careless_library.py").write_text(CARELESS)
    monkeypatch.syspath_prepend(tmp_path)

    def load() -> None:
        import_module("careless_library")
        time.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        load()
    assert sys.modules["careless_library"].whole


@pytest.mark.usefixtures("handler")
def test_elsewhere_it_comes_at_once() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_who_ignores_it_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupt_after_imports()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
