"""The folder of a run while it is written: taken, locked, given back after a failure, recognised after a kill."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path

from emhrnn.errors import DataError, TrainingError
from emhrnn.files import UNFINISHED, locked, write_text
from emhrnn.training.run import BAD_BATCH, CHECKPOINTS, CORPUS, METRICS, MODEL, TENSORBOARD, WEIGHTS, is_run

LOCK = "lock"
MARK = "unfinished"  # a place that was killed before it had a description is still known as ours by this file
NAMES = {*MODEL, LOCK, BAD_BATCH, MARK, CORPUS, TENSORBOARD, CHECKPOINTS}


@contextmanager
def run_folder(out: Path, *, overwrite: bool = False) -> Iterator[None]:
    """`out` as an empty folder to write a run to.

    When the block fails before there are weights or a checkpoint, `out` is put back as it was before, so that the same
    command can be given again; a run that is being replaced goes only when the new one has them. What remains of a run
    that was killed before is not a run, and does not block the place.

    Raises:
        DataError: `out` is taken, or cannot be written.
    """
    if (out / LOCK).exists():
        with locked_run(out):  # not while another process trains there
            pass
    _restore_replaced(out)
    there = out.is_dir() and any(out.iterdir())
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file, the run is to be a folder; give another name")
    if there and not _is_remnant(out):
        if not overwrite and is_run(out) and not (out / METRICS).exists():
            raise DataError(
                f"{out} holds an unfinished run; resume it with --resume, or replace it with --overwrite (in Python: "
                "resume=True or overwrite=True)"
            )
        if not overwrite:
            raise DataError(
                f"{out} exists and is not empty; give another folder, or replace the run with --overwrite (in Python: "
                "overwrite=True)"
            )
        if not is_run(out):
            raise DataError(f"{out} is not a run folder, so it is not overwritten; give another folder")
    empty = out.is_dir() and not there
    old = out.with_name(f".{out.name}.{secrets.token_hex(4)}.old") if there else None
    try:
        if old is not None:
            out.rename(old)
        out.mkdir(parents=True, exist_ok=True)
        write_text(out / MARK, "emhrnn train is at work here, or was stopped.\n")
    except OSError as error:
        if not empty and (old is None or old.exists()):
            with suppress(OSError):
                _put_back(out, old, empty=False)
        raise DataError(f"cannot write to {out}: {error.strerror}; give another folder") from None
    try:
        with locked_run(out):
            yield
        finish(out)
    except BaseException as error:
        if not is_begun(out) and not (isinstance(error, TrainingError) and (out / BAD_BATCH).exists()):
            _put_back(out, old, empty=empty)
            old = None
        raise
    finally:
        if old is not None:
            _remove(old)


def checkpoint_files(out: Path) -> list[Path]:
    """The checkpoints of a run, newest first."""
    return sorted((out / CHECKPOINTS).glob("step-*.safetensors"), reverse=True)


def is_begun(out: Path) -> bool:
    """True when there is something to use or to resume from."""
    return (out / WEIGHTS).exists() or bool(checkpoint_files(out))


@contextmanager
def locked_run(folder: Path) -> Iterator[None]:
    """One process trains into a run folder, or calibrates it, at a time.

    Raises:
        DataError: another process has it, or the folder cannot be written to.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(
                locked(folder / LOCK, f"{{holder}} is training into {folder}; wait for it, or give another folder")
            )
        except OSError as error:
            raise DataError(
                f"cannot write to {folder}: {error.strerror}; put that right, or give another folder"
            ) from None
        yield


def finish(out: Path) -> None:
    """Training is done: one checkpoint is enough to train on from, and the folder is no longer marked as unfinished."""
    for path in checkpoint_files(out)[1:]:
        path.unlink()
    (out / MARK).unlink(missing_ok=True)


def remove_partial(out: Path) -> None:
    """What a kill left of files that were being written."""
    for folder in (out, out / CHECKPOINTS):
        for path in folder.glob(".*.partial"):
            path.unlink()


def _is_remnant(out: Path) -> bool:
    """Begun by us, and killed before it had anything of use; at the earliest, before there was any file."""
    names = {UNFINISHED.sub(r"\1", path.name) for path in out.iterdir()}
    return (not names or is_run(out) or MARK in names) and names <= NAMES and not is_begun(out)


def _restore_replaced(out: Path) -> None:
    """After a kill: the run that was being replaced takes its place again, unless the new one has begun."""
    with suppress(OSError):
        for old in sorted(out.parent.glob(f".{escape(out.name)}.????????.old")):
            if out.is_dir() and _is_remnant(out):
                shutil.rmtree(out)
            if out.exists():
                shutil.rmtree(old)
            else:
                old.rename(out)


def _remove(folder: Path) -> None:
    """Remove a folder; an error names it, not one of the names inside."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        error.filename = str(folder)
        raise


def _put_back(out: Path, old: Path | None, *, empty: bool) -> None:
    shutil.rmtree(out)
    if old is not None:
        old.rename(out)
    elif empty:
        out.mkdir()
