"""Compiles a C++ file once per source, compiler and CPU, into a cache folder of the user, and loads it. A wheel has the
usual libraries inside, ready to be loaded.

The folder is `compiled` in $EMHRNN_CACHE, or else in emhrnn in $XDG_CACHE_HOME, or else in ~/.cache/emhrnn. Processes
that build at the same time do not disturb each other: each writes a file of its own and renames it. Everything that is
compiled has a twin in Python that gives the same results: `EMHRNN_NATIVE=0`, or no compiler, and the twin serves.

A library is loaded only if it is as it was compiled, by the size and the checksum beside it, and if the folder and its
files belong to this user (or to root) and nobody else can write to them. Else it is compiled again; in a folder that
others can write to, for this process alone.
"""

import ctypes
import hashlib
import logging
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Literal

from emhrnn.errors import DataError
from emhrnn.files import from_json, sha256, write_json

WINDOWS = sys.platform == "win32"
FLAGS = ("-O3", "-std=c++17", "-shared", "-static" if WINDOWS else "-fPIC")  # of GCC, MinGW and Clang
MSVC = ("/nologo", "/LD", "/O2", "/std:c++17", "/permissive-", "/Zc:lambda", "/EHsc", "/utf-8")
SUFFIX = ".dll" if WINDOWS else ".so"
NUMERIC = ("-pthread", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")  # of sources with vector instructions
Capability = Literal["AVX512", "AVX2", "DEFAULT"]
# Never -march=native: the cache may be shared by unlike machines.
CAPABILITY_FLAGS: dict[Capability, tuple[str, ...]] = {
    "AVX512": ("-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"),
    "AVX2": ("-mavx2", "-mfma"),
    "DEFAULT": (),
}
COMPILERS = ("c++", "g++", "clang++", *(["cl"] if WINDOWS else []))
TIMEOUT = 300  # seconds
SHIPPED = Path(__file__).parent / "compiled"  # what a wheel has inside (hatch_build.py)

log = logging.getLogger(__name__)


class BuildError(Exception):
    """Why there is no compiled library, in one line."""


def try_library(source: Path, *, numeric: bool = False, instead: str) -> ctypes.CDLL | None:
    """The compiled source, or None where it cannot or shall not be used; one log line says what serves `instead`.
    `numeric` sources are compiled for the vector instructions of this CPU. What the package has inside comes first."""
    if os.environ.get("EMHRNN_NATIVE", "1") == "0":
        log.info("EMHRNN_NATIVE=0: %s", instead)
        return None
    kind = capability() if numeric else "DEFAULT"
    if (shipped := SHIPPED / shipped_name(source, kind)).is_file():
        try:
            return ctypes.CDLL(str(shipped))
        except OSError as error:
            log.warning("%s cannot be loaded (%s): it is compiled again", shipped, error)
    try:
        return load_library(source, flags=flags_of(kind) if numeric else ())
    except BuildError as error:
        log.warning("%s, which is slower: %s", instead, error)
        return None


def flags_of(kind: Capability) -> tuple[str, ...]:
    """For numeric sources."""
    return (*NUMERIC, *CAPABILITY_FLAGS[kind])


def shipped_name(source: Path, kind: Capability) -> str:
    """The file of a compiled source in the package."""
    return f"{source.stem}-{kind.lower()}{SUFFIX}"


def load_library(source: Path, *, flags: tuple[str, ...] = ()) -> ctypes.CDLL:
    """The compiled source, from the cache if it is there and sound. `flags` are given to the compiler besides FLAGS.

    Raises:
        BuildError: there is no compiler, it failed, or the cache folder cannot be written.
    """
    compiler, flags = find_compiler(), (*FLAGS, *flags)
    library = cache_folder() / "compiled" / f"{source.stem}-{_key(source, compiler, flags)}{SUFFIX}"
    try:
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if fault := _access_fault(library.parent):
            log.warning("%s %s: %s is compiled for this process alone", library.parent, fault, source.name)
            with tempfile.TemporaryDirectory(prefix="emhrnn-") as private:
                return _compiled(source, compiler, flags, Path(private) / library.name)
        if library.exists():
            fault = _fault(library)
            if not fault:
                try:
                    return ctypes.CDLL(str(library))
                except OSError as error:
                    fault = f"cannot be loaded ({error})"
            log.warning("%s %s: it is not used but compiled again", library, fault)
        return _compiled(source, compiler, flags, library)
    except (OSError, DataError) as error:
        raise BuildError(f"cannot use {library}: {error}; set EMHRNN_CACHE to a folder that can be written") from error


def find_compiler() -> list[str]:
    """The command of a C++ compiler: $CXX, which may carry options, or the first one found."""
    wanted = os.environ.get("CXX")
    for command in [wanted] if wanted else COMPILERS:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise BuildError(
                f"CXX={command} is not a command ({error}); set CXX to a C++ compiler, or unset it"
            ) from error
        if words and (found := shutil.which(words[0])):
            return [found, *words[1:]]
    raise BuildError(f"no C++ compiler found ({wanted or ', '.join(COMPILERS)}); install one or set CXX")


def cache_folder() -> Path:
    """Where compiled code is kept, as the environment says."""
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


def compile_library(compiler: list[str], source: Path, library: Path, flags: tuple[str, ...]) -> None:
    """By FLAGS and others of `flags`; MSVC by options of its own, as it gets no vector instructions (`capability`)."""
    if _is_msvc(compiler):
        run([*compiler, *MSVC, str(source), f"/Fe{library}", f"/Fo{library.with_suffix('.obj')}"])
    else:
        run([*compiler, *flags, str(source), "-o", str(library)])


def _is_msvc(compiler: list[str]) -> bool:
    return Path(compiler[0]).stem.lower() == "cl"


def _key(source: Path, compiler: list[str], flags: tuple[str, ...]) -> str:
    version = "" if _is_msvc(compiler) else run([*compiler, "--version"])  # its path names the version
    sources = [source, *sorted(source.parent.glob("*.h"))]  # which it may include
    what = [*(file.read_text(encoding="utf-8") for file in sources), version, platform.machine(), *compiler, *flags]
    return hashlib.sha256("\0".join(what).encode()).hexdigest()[:16]


def _fault(library: Path) -> str:
    """What is wrong with a library of the cache, or nothing."""
    record = _record(library)
    for file in (library, record):
        if not file.exists():
            return "has no checksum beside it"
        if fault := _access_fault(file):
            return fault
    try:
        written = from_json(record.read_text(encoding="utf-8"))
    except ValueError:
        written = None
    if written != _measured(library):
        return "is damaged: size or checksum differ from when it was compiled"
    return ""


def _access_fault(path: Path) -> str:
    """Why others may have written this file or folder, or nothing."""
    if not hasattr(os, "geteuid"):
        return ""
    found = path.stat() if path.is_dir() else path.lstat()
    if stat.S_ISLNK(found.st_mode):
        return "is a link"
    if found.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    return "can be written by other users" if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _record(library: Path) -> Path:
    return library.with_suffix(".json")


def _measured(library: Path) -> dict[str, int | str]:
    return {"bytes": library.stat().st_size, "sha256": sha256(library)}


def _compiled(source: Path, compiler: list[str], flags: tuple[str, ...], library: Path) -> ctypes.CDLL:
    """Compile, keep with size and checksum, and load."""
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:  # MSVC leaves other files, too
        unfinished = Path(folder, library.name)
        compile_library(compiler, source, unfinished, flags)
        unfinished.chmod(0o700)
        measured = _measured(unfinished)
        unfinished.replace(library)
    write_json(_record(library), measured)
    _record(library).chmod(0o600)
    return ctypes.CDLL(str(library))


def run(command: list[str]) -> str:
    """What a command prints. Raises a BuildError where it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"cannot run {command[0]}: {error}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildError(f"{command[0]} failed with code {done.returncode}: {said[0] if said else 'it said nothing'}")
    return done.stdout
