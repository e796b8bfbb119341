"""The place of a new run: free before, and either a usable run or as it was before, whatever happens meanwhile."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emhrnn.errors import DataError, TrainingError
from emhrnn.files import write_text
from emhrnn.training import checkpointing, tensorboard
from emhrnn.training.job import name_of_job, restarted
from emhrnn.training.lock import LOCK, check_unlocked, locked
from emhrnn.training.run import (
    CARD,
    CONFIG,
    ENCODER,
    HISTORY,
    IDS,
    METRICS,
    VOCABULARY,
    WEIGHTS,
    is_run,
    read_description,
)

BAD_BATCH = "bad-batch.safetensors"
MARK = "unfinished"  # a place that was killed before it had a description is still known as ours by this file
FILES = {CONFIG, WEIGHTS, VOCABULARY, IDS, HISTORY, METRICS, CARD, BAD_BATCH, MARK, LOCK}
NAMES = FILES | {ENCODER, tensorboard.FOLDER, checkpointing.FOLDER, "corpus"}


@contextmanager
def run_folder(out: Path, *, overwrite: bool = False) -> Iterator[None]:
    """`out` as an empty folder to write a run to.

    When the block fails before there are weights or a checkpoint, `out` is put back as it was before, so that the same
    command can be given again; a run that is being replaced goes only when the new one has them. What remains of a run
    that was killed before is no run, and does not block the place.

    Raises:
        DataError: `out` is taken, or cannot be written.
    """
    if out.is_dir():
        check_unlocked(out)
    there = out.is_dir() and any(out.iterdir())
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file, the run is to be a folder; give another name")
    if there and not _is_remnant(out):
        if not overwrite and is_run(out) and not (out / METRICS).exists():
            raise DataError(
                f"{out} holds an unfinished run; go on with --resume, or replace it with --overwrite (in Python: "
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
        with locked(out):
            yield
        finish(out)
    except BaseException as error:
        if not is_begun(out) and not (isinstance(error, TrainingError) and (out / BAD_BATCH).exists()):
            _put_back(out, old, empty=empty)
            old = None
        raise
    finally:
        if old is not None:
            shutil.rmtree(old)


def begun_by_this_job(out: Path) -> bool:
    """True when torchrun has started its processes again, and they had begun the run at `out` before."""
    return restarted() and is_run(out) and read_description(out).get("job") == name_of_job()


def is_begun(out: Path) -> bool:
    """True when there is something to use or to go on from."""
    return (out / WEIGHTS).exists() or bool(checkpointing.files(out / checkpointing.FOLDER))


def finish(out: Path) -> None:
    (out / MARK).unlink(missing_ok=True)


def remove_partial(out: Path) -> None:
    """What a kill left of files that were being written."""
    for folder in (out, out / checkpointing.FOLDER):
        for path in folder.glob(".*.partial"):
            path.unlink()


def _is_remnant(out: Path) -> bool:
    """Begun by us, and killed before it had anything of use."""
    names = {path.name for path in out.iterdir() if not path.name.endswith(".partial")}
    return (is_run(out) or MARK in names) and names <= NAMES and not is_begun(out)


def _put_back(out: Path, old: Path | None, *, empty: bool) -> None:
    shutil.rmtree(out)
    if old is not None:
        old.rename(out)
    elif empty:
        out.mkdir()
