"""What holds for all commands: Ctrl-C during an import, and memory that runs out."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from emhrnn.cli import interrupt_after_imports
from emhrnn.errors import DataError
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


def test_an_unfinished_file_is_named_as_what_it_becomes(
    cli: Cli, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("cannot read a. Or 'b/.new.607444b1.partial/c.json'; do")

    monkeypatch.setattr("emhrnn.scoring.score", fail)
    assert "cannot read a. Or 'b/new/c.json'; do" in cli.error("predict", run, tmp_path / "x.csv", "--out", "y.csv")


@pytest.mark.parametrize(
    ("command", "limit", "megabytes"),
    [
        ("train", "RLIMIT_DATA", 60),
        ("train", "RLIMIT_DATA", 520),  # torch hangs or aborts
        ("train", "RLIMIT_AS", 1200),
        ("predict", "RLIMIT_AS", 300),  # pyarrow crashes
    ],
)
def test_too_little_memory_for_a_library_is_said_before_it_is_loaded(
    command: str, limit: str, megabytes: int, tmp_path: Path
) -> None:
    data, size = write_reviews(tmp_path / "a.csv", 24), megabytes << 20
    arguments = (
        [data, "--out", tmp_path / "run"] if command == "train" else ["demo", data, "--out", tmp_path / "run.parquet"]
    )
    command = [sys.executable, "-m", "emhrnn", command, *map(str, arguments)]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(getattr(resource, limit), (size, size)),
    )  # fmt: skip
    assert ended.returncode == 2
    assert f"limited to {megabytes} MB" in ended.stderr
    assert "ulimit" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["predict", "demo", "a.csv", "--out", "out.csv"], "Too many open files;"),
        (["serve", "demo", "--port", "0"], "only 8 files and connections"),
    ],
    ids=["predict", "serve"],
)
def test_eight_descriptors_are_too_few_and_it_says_so(arguments: list[str], told: str, tmp_path: Path) -> None:
    write_reviews(tmp_path / "a.csv", 24)
    command = [sys.executable, "-m", "emhrnn", *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}, cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)),
    )  # fmt: skip
    assert ended.returncode == 2
    assert told in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_the_setting_that_uses_up_the_memory_is_named(cli: Cli, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "a.csv", 24)
    size = "model.word_size=1000000000"
    for model in ("em-hrnn", "hn-att"):
        settings = ["--model", model, "--set", size, "--set", "training.epochs=3"]
        told = cli.error("train", data, "--out", tmp_path / "run", "--quiet", *settings)
        assert "memory ran out" in told
        assert size in told
        assert "training.epochs" not in told


def imported(*arguments: str) -> set[str]:
    """The modules that a command imports."""
    code = (
        "import sys; from emhrnn.cli import main; sys.argv = ['emhrnn', *sys.argv[1:]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_takes_no_library(option: str) -> None:
    """So that it takes three times as long as starting Python, not eight times (benchmarks/install.py)."""
    modules = imported(option)
    assert not {"typer", "click", "pydantic", "numpy", "json", "pathlib"} & modules
    assert "emhrnn.cli.explain" not in modules


def test_explaining_a_text_imports_what_it_needs() -> None:
    modules = imported("explain", "demo", "The soup was not bad at all.")
    assert {"numpy", "emhrnn.cli.explain"} <= modules
    assert not {"torch", "scipy", "sklearn", "pyarrow", "fastapi", "emhrnn.cli.train"} & modules
    assert not [name for name in modules if name.startswith("emhrnn.paper")]


def test_every_command_is_in_the_help_and_in_the_application() -> None:
    from typer.main import get_command

    from emhrnn.cli import COMMANDS, root_help
    from emhrnn.cli.app import application

    names = [name for group in COMMANDS.values() for name in group]
    every: Any = get_command(application())
    assert sorted(every.commands) == sorted(names)
    assert all(f"\n  {name} " in root_help() for name in names)
    assert list(getattr(get_command(application("explain")), "commands", {})) == ["explain"]


def test_a_command_that_does_not_exist_is_compared_with_all(cli: Cli) -> None:
    assert "Did you mean 'train'?" in cli("trian").err
