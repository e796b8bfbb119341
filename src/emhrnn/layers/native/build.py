"""Compiles a C++ file once per source, compiler and CPU, into a cache folder of the user, and loads it.

The folder is $EMHRNN_CACHE, or else emhrnn in $XDG_CACHE_HOME, or else ~/.cache/emhrnn. Processes that build at the
same time do not disturb each other: each writes a file of its own and renames it.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-pthread", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")
# By name of torch's own run-time detection. Never -march=native: the cache may be shared by unlike machines.
CAPABILITY_FLAGS = {
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"),
    "AVX2": ("-mavx2", "-mfma"),
}
TIMEOUT = 300  # seconds


class BuildError(Exception):
    """Why there are no kernels, in one line."""


def load_library(source: Path | None = None) -> ctypes.CDLL:
    """The compiled file (the kernels, if none is named), from the cache if it is there."""
    source = source or SOURCE
    compiler = find_compiler()
    flags = (*FLAGS, *CAPABILITY_FLAGS.get(torch.backends.cpu.get_cpu_capability(), ()))
    library = cache_folder() / f"{source.stem}-{_key(compiler, flags, source)}.so"
    try:
        if library.exists():
            try:
                return ctypes.CDLL(str(library))
            except OSError:
                pass  # damaged: build it again
        _compile(compiler, flags, source, library)
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise BuildError(f"cannot use {library}: {error}; set EMHRNN_CACHE to a folder that can be written") from error


def find_compiler() -> list[str]:
    """The command of a C++ compiler: $CXX, which may carry options, or the first one found."""
    wanted = os.environ.get("CXX")
    for command in [wanted] if wanted else ["c++", "g++", "clang++"]:
        words = shlex.split(command)
        if words and (found := shutil.which(words[0])):
            return [found, *words[1:]]
    raise BuildError(f"no C++ compiler found ({wanted or 'c++, g++, clang++'}); install one or set CXX")


def cache_folder() -> Path:
    if folder := os.environ.get("EMHRNN_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "emhrnn"


def _key(compiler: list[str], flags: tuple[str, ...], source: Path) -> str:
    version = _run([*compiler, "--version"])
    what = [source.read_text(), version, platform.machine(), *compiler, *flags]
    return hashlib.sha256("\0".join(what).encode()).hexdigest()[:16]


def _compile(compiler: list[str], flags: tuple[str, ...], source: Path, library: Path) -> None:
    library.parent.mkdir(parents=True, exist_ok=True)
    handle, unfinished = tempfile.mkstemp(dir=library.parent, suffix=".so")
    os.close(handle)
    try:
        _run([*compiler, *flags, str(source), "-o", unfinished])
        os.replace(unfinished, library)
    finally:
        Path(unfinished).unlink(missing_ok=True)


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"cannot run {command[0]}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildError(f"{command[0]} failed with code {done.returncode}: {said[0] if said else 'it said nothing'}")
    return done.stdout
