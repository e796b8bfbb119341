"""Where compiled code comes from, and what happens where it cannot."""

import json
import logging
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from emhrnn import compiler as compilers
from emhrnn.compiler import BuildError, cache_folder, capability, load_library, try_library

SOURCE = 'extern "C" long answer() { return 42; }\n'
HAS_COMPILER = any(map(shutil.which, ("c++", "g++", "clang++")))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to compile, with an empty cache folder and the usual environment."""
    monkeypatch.setenv("EMHRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EMHRNN_NATIVE", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    path = tmp_path / "small.cpp"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that takes a moment and gives any valid library; it notes each compilation in a file."""
    return write_compiler(
        tmp_path,
        monkeypatch,
        f'echo compiled >> {tmp_path / "notes"}\nsleep 0.1\nfor last; do :; done; cp {some_library()} "$last"\n',
    )


def some_library() -> Path:
    return next(file for folder in sys.path for file in Path(folder).glob("_bisect.*.so"))


def write_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    script = folder / "compiler"
    script.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo 1.0; exit; fi\n{body}')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", str(script))
    return script


def compilations(folder: Path) -> int:
    return (folder / "notes").read_text().count("compiled")


def libraries(folder: Path) -> list[Path]:
    return list((folder / "cache" / "compiled").glob("*.so"))


@pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler")
def test_a_function_can_be_called(source: Path) -> None:
    assert load_library(source, flags=compilers.CAPABILITY_FLAGS[capability()]).answer() == 42


def test_builds_once_and_then_loads(tmp_path: Path, source: Path, compiler: Path) -> None:
    load_library(source)
    load_library(source)
    assert compilations(tmp_path) == 1
    (library,) = libraries(tmp_path)
    assert library.name.startswith("small-")
    assert library.parent.stat().st_mode & 0o777 == 0o700


def test_builds_at_the_same_time_do_not_disturb_each_other(tmp_path: Path, source: Path, compiler: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(lambda _: load_library(source), range(4)))
    assert len(loaded) == 4
    assert len(libraries(tmp_path)) == 1


def truncate(library: Path) -> None:
    library.write_bytes(library.read_bytes()[:-100])


def flip(library: Path) -> None:
    content = bytearray(library.read_bytes())
    content[len(content) // 2] ^= 1
    library.write_bytes(content)


def forget_the_checksum(library: Path) -> None:
    library.with_suffix(".json").unlink()


def spoil_the_checksum(library: Path) -> None:
    library.with_suffix(".json").write_text("{")


def open_to_all(library: Path) -> None:
    library.chmod(0o777)


def link(library: Path) -> None:
    library.symlink_to(library.rename(library.with_name("elsewhere")))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (truncate, "damaged"),
        (flip, "damaged"),
        (forget_the_checksum, "no checksum"),
        (spoil_the_checksum, "damaged"),
        (open_to_all, "written by other users"),
        (link, "is a link"),
    ],
)
def test_a_library_that_is_not_as_compiled_is_never_loaded_but_compiled_anew(
    spoil: Callable[[Path], None],
    says: str,
    tmp_path: Path,
    source: Path,
    compiler: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """In a copy of the cache: the library in this process stays mapped."""
    load_library(source)
    (library,) = libraries(tmp_path)
    shutil.copytree(library.parent, library.parent.with_name("copy"), copy_function=shutil.copy2)
    library.parent.rename(tmp_path / "loaded")
    library.parent.with_name("copy").rename(library.parent)
    spoil(library)
    load_library(source)
    assert compilations(tmp_path) == 2
    (record,) = caplog.records
    assert says in record.getMessage()
    load_library(source)
    assert compilations(tmp_path) == 2
    assert len(caplog.records) == 1


def test_a_library_of_another_user_is_compiled_anew(
    tmp_path: Path, source: Path, compiler: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_library(source)
    (library,) = libraries(tmp_path)
    if os.geteuid() == 0:  # whose own files are trusted by all
        os.chown(library, 12345, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 12345)
    load_library(source)
    assert compilations(tmp_path) == 2
    assert "belongs to another user" in caplog.text


def test_in_a_folder_that_others_can_write_to_nothing_is_kept(
    tmp_path: Path, source: Path, compiler: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cache" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    load_library(source)
    load_library(source)
    assert compilations(tmp_path) == 2
    assert not list(folder.iterdir())
    assert "for this process alone" in caplog.text


def test_the_key_names_source_compiler_and_flags(tmp_path: Path, source: Path, compiler: Path) -> None:
    load_library(source)
    load_library(source, flags=("-mavx2",))
    compiler.write_text(compiler.read_text().replace("1.0", "1.1"))
    load_library(source)
    source.write_text(SOURCE.replace("42", "43"))
    load_library(source)
    source.with_name("included.h").write_text("// a part of it")
    load_library(source)
    assert len(libraries(tmp_path)) == 5


@pytest.mark.parametrize(
    ("variable", "value", "level", "says"),
    [
        ("EMHRNN_NATIVE", "0", logging.INFO, "EMHRNN_NATIVE=0: Python serves"),
        ("CXX", "false", logging.WARNING, "false failed with code 1: "),
        ("CXX", "no-such", logging.WARNING, "no C++ compiler found (no-such); install one or set CXX"),
        ("CXX", "g++ '-O2", logging.WARNING, "No closing quotation"),
        ("EMHRNN_CACHE", os.devnull + "/x", logging.WARNING, "set EMHRNN_CACHE to a folder that can be written"),
    ],
)
def test_where_it_is_not_available_one_line_says_so(
    variable: str,
    value: str,
    level: int,
    says: str,
    source: Path,
    compiler: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, value)
    caplog.set_level(logging.INFO)
    assert try_library(source, instead="Python serves") is None
    (record,) = caplog.records
    assert record.levelno == level
    assert says in record.getMessage()
    assert "Python serves" in record.getMessage()
    assert "\n" not in record.getMessage()


def test_a_compiler_error_is_quoted(tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_compiler(tmp_path, monkeypatch, 'echo "small.cpp:1: no such thing" >&2\necho more >&2\nexit 3\n')
    with pytest.raises(BuildError, match=r"failed with code 3: small\.cpp:1: no such thing$"):
        load_library(source)
    assert list((tmp_path / "cache" / "compiled").iterdir()) == []


def test_msvc_has_options_of_its_own(
    tmp_path: Path, source: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of GCC's it knows none, and what it leaves beside the library goes."""
    write = f'case $option in /Fe*) cp {some_library()} "${{option#/Fe}}";; /Fo*) echo > "${{option#/Fo}}";; esac'
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / "notes"}\nfor option; do {write}; done\n')
    monkeypatch.setenv("CXX", str(compiler.rename(compiler.with_name("cl.exe"))))
    load_library(source, flags=("-mavx2",))
    load_library(source)
    for called in (tmp_path / "notes").read_text().splitlines():
        options = called.split()
        assert "/LD" in options
        assert str(source) in options
        assert not [option for option in options if option.startswith("-")]
    assert {path.suffix for path in (tmp_path / "cache" / "compiled").iterdir()} == {compilers.SUFFIX, ".json"}


def test_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMHRNN_CACHE", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("EMHRNN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "emhrnn"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "emhrnn"


def test_the_capability_is_the_one_that_torch_sees() -> None:
    import torch

    assert torch.backends.cpu.get_cpu_capability() in (capability(), "NO AVX")


@pytest.mark.parametrize(
    ("machine", "flags", "expected"),
    [
        ("x86_64", "fpu avx2 fma avx512f avx512bw avx512dq avx512vl", "AVX512"),
        ("x86_64", "fpu avx2 fma avx512f", "AVX2"),
        ("AMD64", "fpu avx2 fma", "AVX2"),
        ("x86_64", "fpu avx2", "DEFAULT"),
        ("aarch64", "avx2 fma", "DEFAULT"),
    ],
)
def test_capabilities(machine: str, flags: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr(Path, "read_text", lambda self: f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: none\n")
    assert capability.__wrapped__() == expected


def test_without_proc_there_is_no_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    assert capability.__wrapped__() == "DEFAULT"


PACKAGE = Path(compilers.__file__).parent
PLAIN = ("-DEMHRNN_PLAIN", "-pedantic", "-Werror")


@pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler here")
@pytest.mark.parametrize("name", ["text/stretches.cpp", "layers/native/kernels.cpp", "paper/em/plan.cpp"])
def test_sources_have_a_form_without_extensions_of_gcc(name: str) -> None:
    """Which MSVC would not take."""
    command = [*compilers.find_compiler(), "-std=c++17", "-E", *PLAIN, str(PACKAGE / name)]
    read, ours = subprocess.run(command, capture_output=True, text=True, check=True).stdout, False
    for line in read.splitlines():
        if marker := re.match(r'# \d+ "(.*?)"', line):
            ours = Path(marker[1]).is_relative_to(PACKAGE)
        elif ours:
            assert not re.search(r"__builtin_(?!inff|huge|nan)|__attribute__|_mm\d+_", line), line


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.h")) + sorted(PACKAGE.rglob("*.cpp")), ids=lambda path: path.name
)
def test_what_python_calls_is_exported(path: Path) -> None:
    """Windows exports nothing else."""
    _, _, called = path.read_text(encoding="utf-8").partition('extern "C" {')
    assert not re.findall(r"^(?!EXPORT\b|static\b)\w[\w \t*]*\(", called.partition('}  // extern "C"')[0], re.MULTILINE)


EXPLAIN = """
import json, sys, emhrnn
model = emhrnn.load("demo")
texts = ["The soup was not bad at all. The waiter was rude!", "Zzz.", "A wonderful room, and a great view."]
evidence = [explanation.evidence.phrases.tolist() for explanation in model.explain(texts)]
print(json.dumps([model.predict_proba(texts).tolist(), *evidence]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler here")
def test_that_form_gives_the_same_results(tmp_path: Path) -> None:
    def answers(**variables: str) -> list[list[object]]:
        command, environment = [sys.executable, "-c", EXPLAIN], {**os.environ, "EMHRNN_NATIVE": "1", **variables}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
        return json.loads(done.stdout)

    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\nexec {shlex.join([*compilers.find_compiler(), *PLAIN])} "$@" -O1\n')
    compiler.chmod(0o700)
    plain = answers(CXX=str(compiler), EMHRNN_CACHE=str(tmp_path))
    assert {path.name.partition("-")[0] for path in tmp_path.glob("compiled/*.so")} == {"stretches", "kernels"}
    for found, expected in zip(plain, answers(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
