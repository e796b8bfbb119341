"""What a power loss leaves of a folder, from the log of preload.c: bytes that were not synced are gone and, if the file
system is of that kind, so are names that were made, changed or removed since their folder was synced."""

import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """One line of the log. `value` is the size of a file, or the number of a backup (0: none)."""

    what: str
    path: str
    to: str
    value: int


def read_log(log: Path) -> list[Change]:
    """What the process did, in order."""
    if not log.exists():
        return []
    lines = (line.split("\t") for line in log.read_text(encoding="utf-8", errors="surrogateescape").splitlines())
    return [Change(what, path, to, int(value)) for what, path, to, value in lines]


def lose_unsynced(changes: list[Change], backups: Path, *, names: bool) -> None:
    """Apply the loss: of bytes, and of `names` of files and folders."""
    kept = _synced_sizes(changes)
    if names:
        for change in reversed(_unsynced_names(changes)):
            with suppress(OSError):
                _undo(change, backups)
            if change.what == "rename":
                _rename(kept, change.to, change.path)
    for path, size in kept.items():
        file = Path(path)
        if file.is_file() and file.stat().st_size > size:
            os.truncate(file, size)


def _synced_sizes(changes: list[Change]) -> dict[str, int]:
    """Of every file that was written: the bytes that are on the disk for certain."""
    now: dict[str, int] = {}
    synced: dict[str, int] = {}
    for change in changes:
        path = change.path
        if change.what in ("create", "truncate"):
            now[path], synced[path] = change.value, min(change.value, synced.get(path, change.value))
        elif change.what == "write":
            synced.setdefault(path, 0)
            now[path] = change.value
        elif change.what == "sync" and path in now:
            synced[path] = now[path]
        elif change.what == "rename":
            _rename(now, path, change.to)
            _rename(synced, path, change.to)
        elif change.what == "unlink":
            now.pop(path, None)
            synced.pop(path, None)
    return synced


def _rename(sizes: dict[str, int], before: str, after: str) -> None:
    """A file, or a folder with all in it."""
    for name in [name for name in sizes if name == before or name.startswith(f"{before}/")]:
        sizes[after + name[len(before) :]] = sizes.pop(name)


def _unsynced_names(changes: list[Change]) -> list[Change]:
    """Changes of names whose folder was not synced after them."""
    pending: list[Change] = []
    for change in changes:
        if change.what in ("create", "mkdir", "unlink", "rmdir", "rename"):
            pending.append(change)
        elif change.what == "sync":
            pending = [one for one in pending if os.path.dirname(one.to or one.path) != change.path]
    return pending


def _undo(change: Change, backups: Path) -> None:
    path, backup = Path(change.path), backups / str(change.value)
    if change.what == "create":
        path.unlink()
    elif change.what == "mkdir":
        shutil.rmtree(path)
    elif change.what == "rmdir":
        path.mkdir()
    elif change.what == "rename":
        Path(change.to).rename(path)
        if change.value:
            os.link(backup, change.to)
    elif change.value:
        os.link(backup, path)
