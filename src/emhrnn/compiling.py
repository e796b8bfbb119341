"""Compiles a C++ file once per source, compiler and CPU, into a cache folder of the user, and loads it.

The folder is $EMHRNN_CACHE, or else emhrnn in $XDG_CACHE_HOME, or else ~/.cache/emhrnn. Processes that build at the
same time do not disturb each other: each writes a file of its own and renames it. Everything that is compiled has a
twin in Python that gives the same results: `EMHRNN_NATIVE=0`, or no compiler, and the twin serves.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal

FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC")
Capability = Literal["AVX512", "AVX2", "DEFAULT"]
# Never -march=native: the cache may be shared by unlike machines.
CAPABILITY_FLAGS: dict[Capability, tuple[str, ...]] = {
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"),
    "AVX2": ("-mavx2", "-mfma"),
    "DEFAULT": (),
}
TIMEOUT = 300  # seconds

log = logging.getLogger(__name__)


class BuildError(Exception):
    """Why there is no compiled library, in one line."""


def try_library(source: Path, *, flags: tuple[str, ...] = (), instead: str) -> ctypes.CDLL | None:
    """The compiled source, or None where it cannot or shall not be used; one log line says what serves `instead`."""
    if os.environ.get("EMHRNN_NATIVE", "1") == "0":
        log.info("EMHRNN_NATIVE=0: %s", instead)
        return None
    try:
        return load_library(source, flags=flags)
    except BuildError as error:
        log.warning("%s, which is slower: %s", instead, error)
        return None


def load_library(source: Path, *, flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The compiled source, from the cache if it is there. `flags` are given to the compiler besides FLAGS."""
    compiler, flags = find_compiler(), (*FLAGS, *flags)
    library = cache_folder() / f"{source.stem}-{_key(source, compiler, flags)}.so"
    try:
        if library.exists():
            try:
                return ctypes.CDLL(str(library))
            except OSError:
                pass  # damaged: build it again
        _compile(source, compiler, flags, library)
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


@cache
def capability() -> Capability:
    """The vector instructions of this CPU, by the names and conditions that torch uses. Linux tells; others: none."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "DEFAULT"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "DEFAULT"
    has = set(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())
    if has >= {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma"}:
        return "AVX512"
    return "AVX2" if has >= {"avx2", "fma"} else "DEFAULT"


def _key(source: Path, compiler: list[str], flags: tuple[str, ...]) -> str:
    version = _run([*compiler, "--version"])
    sources = [source, *sorted(source.parent.glob("*.h"))]  # which it may include
    what = [*(file.read_text(encoding="utf-8") for file in sources), version, platform.machine(), *compiler, *flags]
    return hashlib.sha256("\0".join(what).encode()).hexdigest()[:16]


def _compile(source: Path, compiler: list[str], flags: tuple[str, ...], library: Path) -> None:
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
