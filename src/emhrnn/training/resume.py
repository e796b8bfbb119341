"""`resume`: go on with a run that was stopped, as if it had never been. All it needs is in the run folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_json
from emhrnn.models.fitting import Fitted
from emhrnn.text import Vocabulary, read_vectors
from emhrnn.training import checkpointing, history
from emhrnn.training.calibrating import validate
from emhrnn.training.config import Config, validated
from emhrnn.training.data import Named, checksum, embedding_table
from emhrnn.training.fit import Result
from emhrnn.training.folder import finish, remove_partial
from emhrnn.training.history import Epoch
from emhrnn.training.loop import Step
from emhrnn.training.run import CONFIG, FREE, HISTORY, METRICS, VOCABULARY, WEIGHTS, load_run, new_run, read_description
from emhrnn.training.state import Best, Purpose, numpy_generator
from emhrnn.training.train import Trained, fit_into


def resume(
    out: Path,
    *,
    data: Named | None = None,
    valid: Named | None = None,
    config: Config | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    say: Callable[[str], None] = print,
) -> Trained:
    """Train the run at `out` to its end, from its newest good checkpoint, or from the start where it has none yet.

    Data and settings are those of the run. What is given here must agree with them, except for how long to train
    (`epochs`, `patience`), `threads` and `checkpoint_seconds`. A run that is finished stays so, unless it is given more
    epochs.

    Raises:
        CheckpointError: the run or its checkpoints cannot be read, or are of other data.
        ConfigError, DataError: another setting or other data was given.
    """
    description = read_description(out)
    settings = _settings(out, description, config)
    try:
        parts = description["data"]
        _check_same(out, data, parts["train"])
        _check_same(out, valid, parts["valid"])
        remove_partial(out)
        vocabulary = Vocabulary.load(out / VOCABULARY)
        training = _open(out, data, parts["train"]["corpus"]).remap(vocabulary)
        if parts["valid"]["corpus"] is None:
            generator = numpy_generator(settings.training.seed, Purpose.SPLIT)
            training, validation = training.split(settings.data.validation, generator)
        else:
            validation = _open(out, valid, parts["valid"]["corpus"]).remap(vocabulary)
        table = torch.zeros(len(vocabulary), int(description["embedding_size"]))
        saved = checkpointing.files(out / checkpointing.FOLDER)
        if not saved:
            vectors = description["vectors"]
            table = embedding_table(settings, vocabulary, None if vectors is None else read_vectors(Path(vectors)))
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{out / CONFIG} does not say how to go on ({type(error).__name__}: {error}); train anew with --overwrite"
        ) from None
    if is_finished(out, config):
        run, epochs = load_run(out), history.read(out / HISTORY)
        best = max(epoch.epoch for epoch in epochs if epoch.best)
        return Trained(run, Result(epochs, Best(best), validate(run, validation)), training, validation)
    run = new_run(
        settings, vocabulary, training.classes, table,
        multi_label=training.multi_label, text=training.text, users=training.users, products=training.products,
    )  # fmt: skip
    if not saved and (out / WEIGHTS).exists() and not isinstance(run.model, Fitted):
        raise CheckpointError(f"{out} has no checkpoint to go on from; train anew with --overwrite")
    (out / METRICS).unlink(missing_ok=True)
    write_json(out / CONFIG, {**description, "config": settings.model_dump()})
    fitted = fit_into(out, run, training, validation, progress=progress, on_epoch=on_epoch, on_step=on_step, say=say)
    finish(out)
    return Trained(run, fitted, training, validation)


def is_finished(out: Path, config: Config | None = None) -> bool:
    """True when there is nothing left to do: training came to its end, and no more epochs are asked for."""
    if not (out / METRICS).is_file():
        return False
    description = read_description(out)
    before, now = validated(description["config"]).training, _settings(out, description, config).training
    return now.epochs <= before.epochs and now.patience <= before.patience


def _settings(out: Path, description: dict[str, Any], given: Config | None) -> Config:
    """Those of the run, with what may be changed as given."""
    before = validated(description["config"])
    values = before.model_dump()
    for section, changes in (given.model_dump(exclude_unset=True) if given is not None else {}).items():
        for name, value in changes.items():
            if value != values[section][name] and not (section == "training" and name in FREE):
                raise ConfigError(
                    f"{section}.{name} = {value!r}, but {out} was started with {values[section][name]!r}; leave it "
                    "out, or train anew into another folder"
                )
            values[section][name] = value
    return validated(values)


def _check_same(out: Path, given: Named | None, described: dict[str, Any]) -> None:
    if given is None:
        return
    if not given.path.exists():
        raise DataError(f"{given.path} does not exist; leave it out, {out} knows its data")
    if checksum(given.path) != described["sha256"]:
        raise DataError(
            f"{given.path} is not the data that {out} was started on, or was changed since (the checksums differ); "
            "put it back, or train anew into another folder"
        )
    if given.read_as() != described["read_as"]:
        raise DataError(
            f"{given.path} is to be read as {given.read_as()}, but {out} was started with {described['read_as']}; "
            "leave that out, or train anew into another folder"
        )


def _open(out: Path, given: Named | None, place: str) -> Corpus:
    """The corpus in the run; or the prepared one that was given, wherever it is now."""
    own = not Path(place).is_absolute()
    return Corpus.open(out / place if own or given is None else given.path)
