"""The wheel is built, and installed into an environment of its own, where the package works as people get it: away from
the sources. Only what it depends on is taken from the environment of the tests, so that nothing is downloaded."""

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from emhrnn import compiler
from emhrnn.version import __version__
from tests.behaviour.commands import GOOD, tiny, write_reviews

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "emhrnn"


def run(*command: str | Path, cwd: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env={**environment, **variables}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="needs the build backend, which the extra dev has")
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT, EMHRNN_BUILD="0")
    (built,) = folder.glob("*-py3-none-any.whl")
    return built


COMPILER = """#!/bin/sh
# Writes down how it was called, and a file that is not a library.
echo "$@" >> "$0.log"
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo nothing > "$2"; shift; done
"""


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="knows the variants of x86-64")
def test_libraries_of_each_kind_of_cpu_are_compiled_into_it(tmp_path: Path) -> None:
    """With a compiler that does nothing: compiling all of them takes a minute. What cannot be loaded is compiled again
    on first use."""
    pytest.importorskip("hatchling", reason="needs the build backend, which the extra dev has")
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    run(*build, cwd=ROOT, EMHRNN_BUILD="1", CXX=str(compiler))
    (built,) = tmp_path.glob("*.whl")
    assert built.name.endswith("-py3-none-linux_x86_64.whl")
    packed = {Path(name).name for name in zipfile.ZipFile(built).namelist() if name.startswith("emhrnn/compiled/")}
    kinds = ("default", "avx2", "avx512")
    assert packed == {"stretches-default.so", *(f"{name}-{kind}.so" for name in ("kernels", "plan") for kind in kinds)}
    for call in (tmp_path / "compiler.log").read_text().splitlines():
        assert "-static-libstdc++" in call
        assert ("-mavx512f" in call) == ("-avx512.so" in call)
        assert ("-mavx2" in call) == ("-default.so" not in call)
        assert "-march=native" not in call


def test_a_library_in_the_package_comes_first_if_it_can_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source, folder = tmp_path / "answer.cpp", tmp_path / "compiled"
    source.write_text('extern "C" int answer() { return 42; }')
    folder.mkdir()
    monkeypatch.setattr(compiler, "SHIPPED", folder)
    monkeypatch.setenv("EMHRNN_CACHE", str(tmp_path / "cache"))
    shipped = folder / compiler.shipped_name(source, "DEFAULT")
    shipped.write_text("no library")
    if (made := compiler.try_library(source, instead="nothing")) is None:
        pytest.skip("no C++ compiler here")
    assert made.answer() == 42
    assert "cannot be loaded" in caplog.text
    (cached,) = (tmp_path / "cache" / "compiled").glob("*.so")
    shipped.write_bytes(cached.read_bytes())
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert compiler.try_library(source, instead="nothing").answer() == 42


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment with the wheel in it."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    if not python.exists():
        pytest.skip("knows the layout of environments on Unix only")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    # A path in a .pth file is searched, and the .pth files in it are not: ours, of the sources, stays out.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def test_all_files_of_the_package_are_in_it(wheel: Path) -> None:
    there = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*") if path.is_file()}
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in there if "__pycache__" not in name} <= packed
    suffixes = {Path(name).suffix for name in packed}
    assert suffixes >= {".py", ".typed", ".cpp", ".h", ".css", ".js"}
    assert not [name for name in packed if not name.startswith("emhrnn")], "nothing but the package"


def test_links_of_its_description_are_absolute(wheel: Path) -> None:
    (metadata,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    links = re.findall(r"\]\(([^)\s]+)", text)
    assert len(links) > 10
    assert all(link.startswith(("https://", "#")) for link in links), links
    assert "/raw/main/docs/explanation.png" in text
    assert f"\nVersion: {__version__}\n" in text


def test_it_is_imported_from_there(clean: Path, tmp_path: Path) -> None:
    code = """
import json, torch, emhrnn
from emhrnn.layers.native.torch_kernels import kernels_for
from pathlib import Path
home = Path(emhrnn.__file__).parent
x = torch.zeros(2, 2)
print(json.dumps([str(home), (home / "py.typed").exists(), kernels_for(x, x) is not None]))
"""
    home, typed, compiled = json.loads(run(clean / "python", "-c", code, cwd=tmp_path))
    assert Path(home).is_relative_to(clean.parent)
    assert typed
    from emhrnn.layers.native.torch_kernels import kernels_for

    torch = pytest.importorskip("torch")
    assert compiled == (kernels_for(torch.zeros(2, 2), torch.zeros(2, 2)) is not None), "its C++ compiles as ours does"


@pytest.mark.slow
def test_its_command_works(clean: Path, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv", 24)
    emhrnn = clean / "emhrnn"
    run(emhrnn, "train", "reviews.csv", "--out", "run", "--quiet", *tiny("evidence"), cwd=tmp_path)
    run(emhrnn, "explain", "run", GOOD, "--html", "why.html", cwd=tmp_path)
    assert "<style>" in (tmp_path / "why.html").read_text(encoding="utf-8")
    run(emhrnn, "predict", "run", "reviews.csv", "--out", "labels.csv", "--quiet", cwd=tmp_path)
    assert len((tmp_path / "labels.csv").read_text().splitlines()) == 25
