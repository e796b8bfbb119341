"""One process trains into a run folder at a time. The lock vanishes with its process, however that ends."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from emhrnn.errors import DataError

try:
    import fcntl
except ImportError:  # Windows has no such locks: there, nobody is kept out
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Raises:
    DataError: another process has it, or the folder cannot be written to.
    """
    path = folder / LOCK
    file = _take(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while we have it, so that nobody's but ours goes
        file.close()


def check_unlocked(folder: Path) -> None:
    """Raise a DataError when another process trains into this folder."""
    if (folder / LOCK).exists():
        with locked(folder):
            pass


def _take(path: Path) -> IO[str]:
    while True:
        try:
            file = path.open("a+", encoding="utf-8")
        except OSError as error:
            raise DataError(
                f"cannot write to {path.parent}: {error.strerror}; make it writable, or give another folder"
            ) from None
        if not _has(file):
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise DataError(f"{holder} is training into {path.parent}; wait for it, or give another folder")
        if _is_at(path, file):  # else who had it has removed it since we opened it
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            return file
        file.close()


def _has(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):  # a file system, or a system, without locks
        pass
    return True


def _is_at(path: Path, file: IO[str]) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
