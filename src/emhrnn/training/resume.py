"""`resume`: go on with a run that was stopped, as if it had never been. All it needs is in the run folder."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_json
from emhrnn.models.fitting import Fitted
from emhrnn.text import Vectors
from emhrnn.training import checkpointing, history
from emhrnn.training.calibrating import validate
from emhrnn.training.config import Config, validated
from emhrnn.training.data import Named
from emhrnn.training.fit import Result
from emhrnn.training.fixed import FREE, unknown_setting
from emhrnn.training.folder import finish, remove_partial
from emhrnn.training.history import Epoch
from emhrnn.training.job import ALONE, Job
from emhrnn.training.lock import locked
from emhrnn.training.loop import Step
from emhrnn.training.opening import Opened, open_run
from emhrnn.training.run import CONFIG, HISTORY, METRICS, WEIGHTS, is_run, load_run, read_description
from emhrnn.training.state import Best
from emhrnn.training.train import Trained, checkpoints_of, fit_into


def resume(
    out: Path,
    *,
    data: Named | None = None,
    valid: Named | None = None,
    config: Config | None = None,
    vectors: Path | Vectors | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    say: Callable[[str], None] = print,
    job: Job = ALONE,
) -> Trained:
    """Train the run at `out` to its end, from its newest good checkpoint, or from the start where it has none yet.

    Data, settings and word vectors are those of the run. What is given here must agree with them, except for how long
    to train (`epochs` of a run with one level, `patience`), `threads` and `checkpoint_seconds`. A run that is finished
    stays so, unless it is given more epochs.

    Raises:
        CheckpointError: the run or its checkpoints cannot be read, or are of other data.
        ConfigError, DataError: another setting, or other data or vectors were given.
    """
    description = read_description(out)
    with locked(out):
        done = is_finished(out, config)
        opened = open_run(
            out, description, _settings(out, description, config), data, valid,
            vectors=not done, given_vectors=vectors,
        )  # fmt: skip
        if done:
            job.tell("finished")
            return _finished(out, opened)
        if not isinstance(opened.run.model, Fitted) and (out / WEIGHTS).exists() and not _has_checkpoint(out):
            raise CheckpointError(f"{out} has no checkpoint to go on from; train anew with --overwrite")
        _check_known(out, description, opened.run.config)
        checkpoints_of(out, opened.run, opened.train, opened.valid).check()
        remove_partial(out)
        (out / METRICS).unlink(missing_ok=True)
        write_json(out / CONFIG, {**description, "config": opened.run.config.model_dump()})
        job.tell()
        fitted = fit_into(
            out, opened.run, opened.train, opened.valid,
            progress=progress, on_epoch=on_epoch, on_step=on_step, say=say, job=job,
        )  # fmt: skip
        finish(out)
    return Trained(opened.run, fitted, opened.train, opened.valid)


def follow(out: Path, job: Job) -> Trained:
    """What every process of a job but the first does: take part in training the run that the first has described."""
    told = job.wait()
    if not is_run(out):
        raise DataError(
            f"process {job.rank} of the job, on {socket.gethostname()}, does not see {out}, where the first one has "
            "put the data; let --out be on storage that all machines share, under the same name"
        )
    opened = open_run(out, vectors=False)
    if told == "finished":
        return _finished(out, opened)
    fitted = fit_into(out, opened.run, opened.train, opened.valid, progress=False, say=lambda _: None, job=job)
    return Trained(opened.run, fitted, opened.train, opened.valid)


def _has_checkpoint(out: Path) -> bool:
    return bool(checkpointing.files(out / checkpointing.FOLDER))


def _finished(out: Path, opened: Opened) -> Trained:
    """What training came to before."""
    run, epochs = load_run(out), history.read(out / HISTORY)
    best = [epoch.epoch for epoch in epochs if epoch.best]
    if not best:
        raise CheckpointError(f"{out / HISTORY}: corrupt (no epoch was the best); copy the run again or train anew")
    return Trained(run, Result(epochs, Best(max(best)), validate(run, opened.valid)), opened.train, opened.valid)


def is_finished(out: Path, config: Config | None = None) -> bool:
    """True when there is nothing left to do: training came to its end, and no more epochs are asked for."""
    if not (out / METRICS).is_file():
        return False
    description = read_description(out)
    before, now = validated(description["config"]).training, _settings(out, description, config).training
    return now.epochs <= before.epochs and now.patience <= before.patience


def _check_known(out: Path, description: dict[str, Any], settings: Config) -> None:
    """A setting that the run is too old to name has no default that would go on with what was learned without it."""
    lacking = unknown_setting(description["config"], settings)
    if lacking is not None:
        version = description.get("versions", {}).get("emhrnn", "of then")
        raise CheckpointError(
            f"{out} was begun before there was the setting {lacking}, so that nobody knows how to go on; go on with "
            f"the emhrnn that began it ({version}), or train anew with --overwrite"
        )


def _settings(out: Path, description: dict[str, Any], given: Config | None) -> Config:
    """Those of the run, with what may be changed as given."""
    before = validated(description["config"])
    values = before.model_dump()
    free = FREE - {"epochs"} if before.model.levels > 1 else FREE  # its levels share the epochs
    for section, changes in (given.model_dump(exclude_unset=True) if given is not None else {}).items():
        for name, value in changes.items():
            if value != values[section][name] and not (section == "training" and name in free):
                why = ", and its levels share them" if name == "epochs" else ""
                raise ConfigError(
                    f"{section}.{name} = {value!r}, but {out} was started with {values[section][name]!r}{why}; leave "
                    "it out, or train anew into another folder"
                )
            values[section][name] = value
    return validated(values)
