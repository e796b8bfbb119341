"""The folder of a run while it is written: taken, locked, given back after a failure, recognised after a kill; and the
checkpoints in it that make training go on as if it had never stopped.

RUN/checkpoint/step-000001200.safetensors    arrays: model/..., optimizer/..., objective/...; counters in the note
RUN/checkpoint/step-000001100.safetensors    the one before, should the newest be damaged

The weights of the best epoch are not in a checkpoint: they are `model.safetensors` of the run.
"""

import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError, DataError, TrainingError
from emhrnn.files import UNFINISHED, locked, write_text
from emhrnn.training.arrays import load_arrays, save_arrays
from emhrnn.training.compatibility import difference, fixed_settings, migrated_tensors
from emhrnn.training.data import checksum
from emhrnn.training.run import (
    BAD_BATCH,
    CHECKPOINTS,
    CORPUS,
    METRICS,
    MODEL,
    TENSORBOARD,
    WEIGHTS,
    Run,
    identity,
    is_run,
)

LOCK = "lock"
MARK = "unfinished"  # a place that was killed before it had a description is still known as ours by this file
VERSION, KEPT = 1, 2  # of the format of checkpoints; how many there are
_SHARE = 0.02  # of the time, at most, is spent on checkpoints within an epoch
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


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(
        self,
        out: Path,
        run: Run,
        corpora: Sequence[Corpus],
        *,
        say: Callable[[str], None] = print,
        writes: bool = True,
    ) -> None:
        """A checkpoint is continued with the same words, classes, data and settings only. Of several processes that
        train together all have the same to save, and only one `writes`."""
        self.out, self.folder = out, out / CHECKPOINTS
        self.identity = {
            "words or classes": identity(run),
            "data": "-".join(checksum(corpus.path) for corpus in corpora if corpus.path is not None),
        }
        self.config = run.config
        self.say = say
        self.writes = writes
        self._saved = time.monotonic()
        self._took = 0.0

    @property
    def due(self) -> bool:
        """Only a matter of time: when checkpoints are saved has no influence on what is learned."""
        seconds = self.config.training.checkpoint_seconds
        pause = max(seconds, self._took / _SHARE if seconds else 0.0)
        return self.writes and time.monotonic() - self._saved >= pause

    def save(self, step: int, tensors: Mapping[str, Any], progress: dict[str, Any]) -> None:
        """Keep what training is made of after so many steps: tensors, and `progress` as plain values.

        Raises:
            CheckpointError: it cannot be written; those that are there stay as they are.
        """
        if not self.writes:
            return
        began = time.monotonic()
        identity = {**self.identity, "settings": fixed_settings(self.config)}
        note = {"version": VERSION, "identity": identity, "progress": progress}
        try:
            save_arrays(self.folder / f"step-{step:09}.safetensors", tensors, note)
            for old in checkpoint_files(self.out)[KEPT:]:
                old.unlink()
        except OSError as error:
            remedy = "make it possible to write there, then give the same command again"
            if checkpoint_files(self.out):
                remedy = "the last good one is intact: make it possible to write there, then resume with --resume"
            raise CheckpointError(f"cannot save a checkpoint to {self.folder}: {error.strerror}; {remedy}") from None
        self._saved = time.monotonic()
        self._took = self._saved - began

    def load(self) -> tuple[Path, dict[str, np.ndarray], dict[str, Any]] | None:
        """The newest good checkpoint: its file, arrays and progress; None where there is none at all.

        Raises:
            CheckpointError: it is of a newer version, or of other settings, words or data; or none can be read.
        """
        damaged = ""
        for path in checkpoint_files(self.out):
            try:
                arrays, note = load_arrays(path)
            except CheckpointError:
                note = {}
            version = note.get("version")
            if isinstance(version, int) and version > VERSION:
                raise CheckpointError(
                    f"{path} has version {version} of the checkpoint format, this emhrnn reads version {VERSION}; "
                    "install the emhrnn that wrote it"
                )
            if version == VERSION:
                self._check(path, note["identity"])
                return path, migrated_tensors(self.config.model.name, arrays, checkpoint=True), note["progress"]
            damaged = f"{path} is damaged"
            self.say(f"{damaged}; the checkpoint before it is tried")
        if damaged:
            raise CheckpointError(f"{damaged}; no other checkpoint is there: train again with --overwrite")
        return None

    def _check(self, path: Path, saved: dict[str, Any]) -> None:
        others = [what for what, ours in self.identity.items() if saved.get(what) != ours]
        told = difference(saved["settings"], self.config) or next(
            (f"other {what} than now (the checksums differ)" for what in others), None
        )
        if told is not None:
            raise CheckpointError(
                f"{path} was saved with {told}; put back what was changed, or train again into another folder"
            )
