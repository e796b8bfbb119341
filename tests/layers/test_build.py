"""Where the kernels come from, and what happens where they cannot."""

import logging
import os
import shutil
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from emhrnn.layers import LSTM, native, pack
from emhrnn.layers.native import build
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


@pytest.fixture
def copying_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that takes a moment and gives any valid library; it notes each compilation in a file."""
    library, notes, script = tmp_path / "any.so", tmp_path / "notes", tmp_path / "compiler"
    torch_library = next(Path(torch.__file__).parent.glob("lib/libshm.so"))
    shutil.copy(torch_library, library)
    script.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo 1.0; exit; fi\n'
        f"echo compiled >> {notes}\n"
        "sleep 0.2\n"
        f'for last; do :; done; cp {library} "$last"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(script))
    return notes


def test_builds_once_and_then_loads(tmp_path: Path, copying_compiler: Path) -> None:
    build.load_library()
    build.load_library()
    assert copying_compiler.read_text().count("compiled") == 1
    assert [file.suffix for file in (tmp_path / "cache").iterdir()] == [".so"]


def test_builds_at_the_same_time_do_not_disturb_each_other(tmp_path: Path, copying_compiler: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        libraries = list(pool.map(lambda _: build.load_library(), range(8)))
    assert len(libraries) == 8
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_damaged_library_is_built_again(
    tmp_path: Path, copying_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.load_library()
    (library,) = (tmp_path / "cache").iterdir()
    damaged = tmp_path / "damaged" / library.name
    damaged.parent.mkdir()
    damaged.write_bytes(b"not a library")
    monkeypatch.setenv("EMHRNN_CACHE", str(damaged.parent))
    build.load_library()
    assert copying_compiler.read_text().count("compiled") == 2


def test_the_key_names_source_compiler_and_cpu(
    tmp_path: Path, copying_compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for capability in ("AVX2", "DEFAULT"):
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda capability=capability: capability)
        build.load_library()
    compiler = Path(os.environ["CXX"])
    compiler.write_text(compiler.read_text().replace("1.0", "1.1"))
    build.load_library()
    assert len(list((tmp_path / "cache").iterdir())) == 3


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


def test_a_compiler_error_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "compiler"
    script.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\necho "kernels.cpp:1: no such thing" >&2\nexit 3\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(script))
    with pytest.raises(build.BuildError, match=r"failed with code 3: kernels\.cpp:1: no such thing"):
        build.load_library()
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert build.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("EMHRNN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / "emhrnn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert build.cache_folder() == Path.home() / ".cache" / "emhrnn"


def test_the_switch() -> None:
    with native.native_kernels(False):
        assert native.kernels() is None
