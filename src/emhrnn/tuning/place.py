"""The folder of a study, which several processes share.

study.json     what is searched: data, settings and space, so that nobody joins with others
journal.log    Optuna's journal: every trial, by every process
corpus/        the data as word ids, prepared once for all trials
workers/       a lock per process, held while it lives: the kernel lets go of it even after kill -9
best.toml, trials.csv   what came out, written anew after every trial
"""

import fcntl
import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_json

FORMAT = 1
DESCRIPTION, JOURNAL, BEST, TRIALS = "study.json", "journal.log", "best.toml", "trials.csv"


class Place:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file, the study is to be a folder; give another name")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / "workers").is_dir():
            raise DataError(f"{folder} is not empty and holds no study; give another folder with --out")
        (folder / "workers").mkdir(parents=True, exist_ok=True)
        self.token = secrets.token_hex(8)
        self._alive = self._lock_file(self.token)
        fcntl.flock(self._alive, fcntl.LOCK_EX)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time."""
        with (self.folder / "workers" / "study.lock").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def lives(self, token: str | None) -> bool:
        """True when the process that has this token runs."""
        if token is None or not (self.folder / "workers" / token).exists():
            return False
        with self._lock_file(token) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def leave(self) -> None:
        """A study that never came to have a trial leaves nothing."""
        (self.folder / "workers" / self.token).unlink(missing_ok=True)
        self._alive.close()
        others = [path for path in (self.folder / "workers").iterdir() if path.suffix != ".lock"]
        if not others and not (self.folder / JOURNAL).exists():
            shutil.rmtree(self.folder)

    def join(self, description: dict[str, Any]) -> None:
        """Found the study, or check that it is this one. To be called when locked.

        Raises:
            ConfigError, DataError: the folder holds a study of other settings or data.
        """
        path = self.folder / DESCRIPTION
        if not path.exists():
            write_json(path, {"format": FORMAT, **description})
            return
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
            version = there["format"]
        except (OSError, ValueError, KeyError, TypeError):
            raise CheckpointError(f"{path}: corrupt; give another folder with --out") from None
        if version != FORMAT:
            raise CheckpointError(f"{path}: format {version}, this emhrnn reads format {FORMAT}; give another --out")
        given = json.loads(json.dumps(description))
        for what in ("data", "validation data", "vectors"):
            if there.get(what) != given[what]:
                raise DataError(
                    f"{self.folder} holds a study of other {what}: {_told(there.get(what))}, given {_told(given[what])}"
                    "; give the same, or another folder with --out"
                )
        for what in ("settings", "space"):
            _check_same(self.folder, what, there.get(what) or {}, given[what])

    def storage(self) -> JournalStorage:
        path = self.folder / JOURNAL
        lock = _JournalLock(self.folder / "workers" / "journal.lock")
        lock.acquire()
        _mend(path)
        lock.release()
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))

    def _lock_file(self, token: str) -> IO[str]:
        return (self.folder / "workers" / token).open("a")


class _JournalLock(JournalFileOpenLock):
    """Optuna's own locks outlive a killed process; this one does not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: IO[str] | None = None

    def acquire(self) -> bool:
        self.file = self.path.open("a")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        return True

    def release(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None


def _mend(journal: Path) -> None:
    """Drop the half line that a kill may have left at the end; else what is appended to it could not be read."""
    if not journal.exists():
        return
    content = journal.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with journal.open("r+b") as file:
            file.truncate(whole)


def _check_same(folder: Path, what: str, there: dict[str, Any], given: dict[str, Any]) -> None:
    for name in [*given, *there]:
        if there.get(name) != given.get(name):
            raise ConfigError(
                f"{folder} holds a study of another {what.rstrip('s')}: {name} is {_told(there.get(name))} there, "
                f"{_told(given.get(name))} here; give the same, or another folder with --out"
            )


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value.get('source')} ({str(value.get('sha256'))[:8]}{_read_as(value.get('read_as'))})"
    return "none" if value is None else repr(value)


def _read_as(said: dict[str, str] | None) -> str:
    return "".join(f", {what} {value}" for what, value in (said or {}).items())
