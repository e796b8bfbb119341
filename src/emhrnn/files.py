"""Files that are either whole or absent: written beside their place, synced, then renamed. Their checksums, locks, and
what is not a file."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from emhrnn.errors import DataError

if os.name != "nt":  # Windows has no such locks: what a kill leaves there stays
    import fcntl

UNFINISHED = re.compile(r"\.([^/]+)\.[0-9a-f]{8}\.partial")  # what is being written, by its name
_POLL = 0.02  # seconds between two looks at a lock that is waited for
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)  # a file system without locks: nobody is kept out


def sha256(*paths: Path) -> str:
    """SHA-256 of the file, or of several one after another, as hexadecimal digits; read in constant memory."""
    digest = hashlib.sha256()
    for path in paths:
        with named(path), path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def refuse_pipe(path: Path) -> None:
    """Raise a DataError for a pipe: what is given is looked at before it is read, and often read twice."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path} is a pipe, which can be read only once; write it to a file first, and give that")


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A binary file that takes its name only when the block ends well; else the old file, or none, stays. What killed
    processes left of earlier attempts is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path)
    partial, file = _held_file(path)
    try:
        with named(partial), file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if os.name != "nt":
                partial.replace(path)  # while it is locked: nobody takes it for abandoned
        if os.name == "nt":
            partial.replace(path)  # Windows renames closed files only
        sync_name(path)
    finally:
        partial.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """In place of what is there, whole or not at all."""
    with atomic_file(path) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """UTF-8, line ends as given."""
    write_bytes(path, encoded(text))


def encoded(text: str) -> bytes:
    """UTF-8. A byte of a file name that is not UTF-8, as Python passes it on, becomes an escape: JSON's own, too."""
    return text.encode("utf-8", "backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Indented JSON with a final line end; NaN and infinity are refused, because JSON has no such numbers."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n")


def from_json(text: str | bytes) -> Any:
    """What JSON says; a ValueError also where it is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


@contextmanager
def atomic_folder(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A new folder to fill, which takes the name `path` only when the block ends well.

    An empty folder at `path` is taken over. Any other folder is replaced only with `overwrite`, and only once the new
    one is complete.
    """
    check_free(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path)
    partial = _partial_name(path)
    try:
        with named(partial), _held_folder(partial):
            yield partial
            for file in sorted(partial.iterdir()):
                _sync_file(file)
            sync_name(partial / "any")
            old = _move_away(path)
            partial.rename(path)  # while it is locked: nobody takes it for abandoned
        sync_name(path)
        if old is not None:
            with suppress(FileNotFoundError):  # another writer of `path` may remove it, too
                shutil.rmtree(old)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def remove_abandoned(path: Path) -> None:
    """Remove what processes that were killed left of `path`. What a living process writes is locked, and stays."""
    if os.name == "nt":
        return
    with suppress(OSError):
        names = [match[0] for name in os.listdir(path.parent) if (match := UNFINISHED.fullmatch(name))]
        for partial in (path.with_name(name) for name in names if UNFINISHED.sub(r"\1", name) == path.name):
            with suppress(OSError):  # somebody has the lock, or there are no locks
                _remove_unlocked(partial)


def _remove_unlocked(partial: Path) -> None:
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(partial) if partial.is_dir() else partial.unlink()  # before a new owner gets the lock
    finally:
        os.close(descriptor)


def _hold(partial: Path, descriptor: int) -> bool:
    """Lock a new file, or folder, until it is closed. False if another process removed it before it was locked."""
    if os.name != "nt":
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # which only a process that removes it has, and not for long
    return partial.exists()


def _held_file(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside `path`, locked. One that another process removed before it was locked is made again."""
    while True:
        partial = _partial_name(path)
        with named(partial):
            file = partial.open("xb")
        if _hold(partial, file.fileno()):
            return partial, file
        file.close()


@contextmanager
def _held_folder(partial: Path) -> Iterator[None]:
    """Make the folder and lock it. If another process removes it before it is locked, it is made again."""
    partial.mkdir()
    if os.name == "nt":
        yield
        return
    while True:
        try:
            descriptor = os.open(partial, os.O_RDONLY)
        except FileNotFoundError:
            partial.mkdir()
            continue
        try:
            if _hold(partial, descriptor):
                yield
                return
        finally:
            os.close(descriptor)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Name the file in errors of reading and writing, which do not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def locked(path: Path, taken: str | None = None) -> Iterator[None]:
    """One process at a time in the block: the file `path` is its lock, which vanishes with the process, however that
    ends. Without `taken`, wait for it; with it, who comes second gets an error at once.

    Raises:
        DataError: another process has the lock. The message is `taken`, where "{holder}" is that process.
        OSError: the file cannot be written.
    """
    from filelock import FileLock, Timeout  # here: it brings asyncio along, which most uses do not need

    lock = FileLock(path, timeout=-1 if taken is None else 0, poll_interval=_POLL)
    try:
        lock.acquire()
    except Timeout:
        raise DataError((taken or "").replace("{holder}", _holder(path))) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        with suppress(OSError):  # Windows lets nobody write to a locked file
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)  # while we have it, so that nobody's but ours goes
        lock.release()


def _holder(lock: Path) -> str:
    try:
        return lock.read_text(encoding="utf-8", errors="replace")[:200].strip() or "another process"
    except OSError:
        return "another process"


def check_free(path: Path, *, overwrite: bool = False) -> None:
    """Raise before any work is done for a result that could not take its place."""
    if path.is_file():
        raise DataError(f"{path} is a file, a folder is to be written there; give another destination")
    if path.is_dir() and not overwrite and any(path.iterdir()):
        raise DataError(
            f"{path} exists and is not empty; give another destination, or --overwrite (in Python: overwrite=True)"
        )


def _move_away(path: Path) -> Path | None:
    if not path.exists():
        return None
    old = _partial_name(path)
    path.rename(old)
    return old


def _partial_name(path: Path) -> Path:
    # The random part keeps two writers of the same path apart: the last to finish wins, both results are whole.
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")


def _sync_file(path: Path) -> None:
    with path.open("r+b" if os.name == "nt" else "rb") as file:  # Windows syncs only what may be written to
        os.fsync(file.fileno())


def sync_name(path: Path) -> None:
    """Sync the folder that holds the name `path`: else a rename may not survive a power loss. Not on Windows."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        error.filename = str(path)  # which the user knows, rather than its folder
        raise
