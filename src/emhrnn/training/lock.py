"""One process trains into a run folder at a time. The lock vanishes with its process, however that ends."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
    try:
        descriptor = _take(path)
    except OSError as error:
        raise DataError(f"cannot write to {folder}: {error.strerror}; put that right, or give another folder") from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while we have it, so that nobody's but ours goes
        os.close(descriptor)


def check_unlocked(folder: Path) -> None:
    """Raise a DataError when another process trains into this folder."""
    if (folder / LOCK).exists():
        with locked(folder):
            pass


def _take(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if not _has(descriptor):
                holder = os.read(descriptor, 200).decode(errors="replace").strip() or "another process"
                raise DataError(f"{holder} is training into {path.parent}; wait for it, or give another folder")
            if _is_at(path, descriptor):  # else who had it has removed it since we opened it
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _has(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):  # a file system, or a system, without locks
        pass
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
