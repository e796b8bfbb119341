"""The place of a new run: free before, and either a usable run or as it was before, whatever happens meanwhile."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from emhrnn.errors import DataError, TrainingError
from emhrnn.training.run import CONFIG, HISTORY, METRICS, VOCABULARY, WEIGHTS, is_run

BAD_BATCH = "bad-batch.safetensors"
NAMES = {CONFIG, WEIGHTS, VOCABULARY, HISTORY, METRICS, BAD_BATCH, "corpus"}


@contextmanager
def run_folder(out: Path, *, overwrite: bool = False) -> Iterator[None]:
    """`out` as an empty folder to write a run to.

    When the block fails before there are weights, `out` is put back as it was before, so that the same command can be
    given again; a run that is being replaced goes only when the new one has weights. What remains of a run that was
    stopped before its first weights is no run, and does not block the place.

    Raises:
        DataError: `out` is taken, or cannot be written.
    """
    there = out.is_dir() and any(out.iterdir())
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file, the run is to be a folder; give another name")
    if there and not _is_remnant(out):
        if not overwrite:
            raise DataError(f"{out} exists and is not empty; give another folder, or --overwrite to replace the run")
        if not is_run(out):
            raise DataError(f"{out} is not a run folder, so it is not overwritten; give another folder")
    empty = out.is_dir() and not there
    old = out.with_name(f".{out.name}.{secrets.token_hex(4)}.old") if there else None
    try:
        if old is not None:
            out.rename(old)
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write to {out}: {error.strerror}; give another folder") from None
    try:
        yield
    except BaseException as error:
        if not (out / WEIGHTS).exists() and not (isinstance(error, TrainingError) and (out / BAD_BATCH).exists()):
            _put_back(out, old, empty=empty)
            old = None
        raise
    finally:
        if old is not None:
            shutil.rmtree(old)


def _is_remnant(out: Path) -> bool:
    """A run without weights: nothing in it is of use, except to find out why it failed."""
    names = {path.name for path in out.iterdir()}
    return is_run(out) and names <= NAMES and WEIGHTS not in names


def _put_back(out: Path, old: Path | None, *, empty: bool) -> None:
    shutil.rmtree(out)
    if old is not None:
        old.rename(out)
    elif empty:
        out.mkdir()
