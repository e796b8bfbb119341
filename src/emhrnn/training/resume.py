"""Resume a run that was stopped, as if it had never been. All that it needs is in the run folder."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import sha256, write_json
from emhrnn.text import Vectors, Vocabulary, read_vectors
from emhrnn.training.compatibility import FREE, unknown_setting
from emhrnn.training.config import Config, validated
from emhrnn.training.data import Named, checksum, embedding_table, held_out, selects, with_frequent_names
from emhrnn.training.distributed import Processes
from emhrnn.training.folder import Checkpoints, checkpoint_files, finish, locked_run, remove_partial
from emhrnn.training.progress import FitResult, TrainingContext, read_history
from emhrnn.training.run import (
    CONFIG,
    HISTORY,
    METRICS,
    VOCABULARY,
    WEIGHTS,
    is_run,
    load_run,
    new_run,
    read_description,
)
from emhrnn.training.schedule import Best
from emhrnn.training.train import DEFAULT, Opened
from emhrnn.training.validation import fold_predictions, validate


@contextmanager
def resumed_run(
    out: Path,
    context: TrainingContext = DEFAULT,
    *,
    data: Named | None = None,
    valid: Named | None = None,
    config: Config | None = None,
    vectors: Path | Vectors | None = None,
) -> Iterator[Opened]:
    """The run at `out`, to be trained on in the block, from its newest good checkpoint, or from the start where it has
    none yet. A run that is finished stays so, unless it is given more epochs.

    Data, settings and word vectors are those of the run. What is given here must agree with them, except for how long
    to train (`epochs`, `patience`), `threads` and `checkpoint_seconds`.

    Raises:
        CheckpointError: the run or its checkpoints cannot be read, or are of other data.
        ConfigError, DataError: another setting, or other data or vectors were given.
    """
    description = read_description(out)
    with locked_run(out):
        done = is_finished(out, config)
        opened = open_run(
            out, description, _settings(out, description, config), data, valid,
            vectors=not done, given_vectors=vectors,
        )  # fmt: skip
        if done:
            context.job.tell("finished")
            yield _finished(out, opened)
            finish(out)  # a fault may have come between the metrics and this
            return
        if not opened.run.model.fits_at_once and (out / WEIGHTS).exists() and not checkpoint_files(out):
            raise CheckpointError(f"{out} has no checkpoint to resume from; train again with --overwrite")
        _check_known(out, description, opened.run.config)
        corpora = [opened.train, opened.valid]
        Checkpoints(out, opened.run, corpora, say=lambda _: None).load()  # raises before a file is touched
        remove_partial(out)
        (out / METRICS).unlink(missing_ok=True)
        write_json(out / CONFIG, {**description, "config": opened.run.config.model_dump()})
        context.job.tell()
        yield opened
        finish(out)


def followed_run(out: Path, job: Processes) -> Opened:
    """What every process of a job but the first trains: the run that the first has described."""
    told = job.wait()
    if not is_run(out):
        raise DataError(
            f"process {job.rank} of the job, on {socket.gethostname()}, does not see {out}, where the first one has "
            "put the data; let --out be on storage that all machines share, under the same name"
        )
    opened = open_run(out, vectors=False)
    return _finished(out, opened) if told == "finished" else opened


def _finished(out: Path, opened: Opened) -> Opened:
    """With what training came to before."""
    run, epochs, valid = load_run(out, trainable=True), read_history(out / HISTORY), opened.valid
    best = [epoch.epoch for epoch in epochs if epoch.best]
    if not best:
        raise CheckpointError(f"{out / HISTORY}: corrupt (no epoch was the best); copy the run again or train again")
    scores = validate(run, valid)
    if run.config.data.folds and valid is opened.train:
        scores = fold_predictions(run, valid, out, trained=True).scores(run, max(best), scores.phrases)
    return replace(opened, run=run, finished=FitResult(epochs, Best(max(best)), scores))


def is_finished(out: Path, config: Config | None = None) -> bool:
    """True when there is nothing left to do: training came to its end, and no more epochs are asked for."""
    if not (out / METRICS).is_file():
        return False
    description = read_description(out)
    before, now = validated(description["config"]).training, _settings(out, description, config).training
    return now.epochs <= before.epochs and now.patience <= before.patience


def _check_known(out: Path, description: dict[str, Any], settings: Config) -> None:
    """A setting that the run is too old to name has no default that continues what was learned without it."""
    lacking = unknown_setting(description["config"], settings)
    if lacking is not None:
        version = description.get("versions", {}).get("emhrnn", "of then")
        raise CheckpointError(
            f"{out} cannot be resumed: the run predates the setting {lacking}; resume with the version that began it "
            f"({version}), or train again with --overwrite"
        )


def _settings(out: Path, description: dict[str, Any], given: Config | None) -> Config:
    """Those of the run, with what may be changed as given."""
    before = validated(description["config"])
    values = before.model_dump()
    for section, changes in (given.model_dump(exclude_unset=True) if given is not None else {}).items():
        for name, value in changes.items():
            if value != values[section][name] and not (section == "training" and name in FREE):
                raise ConfigError(
                    f"{section}.{name} = {value!r}, but {out} was started with {values[section][name]!r}; leave it "
                    "out, or train again into another folder"
                )
            values[section][name] = value
    if before.data.folds and values["training"]["epochs"] > before.training.epochs:
        raise ConfigError(
            f"training.epochs = {values['training']['epochs']}, but the epochs of {out} were picked from "
            f"{before.training.epochs} by cross-validation; train again into another folder"
        )
    return validated(values)


def open_run(
    out: Path,
    description: dict[str, Any] | None = None,
    settings: Config | None = None,
    data: Named | None = None,
    valid: Named | None = None,
    *,
    vectors: bool = True,
    given_vectors: Path | Vectors | None = None,
) -> Opened:
    """All of it is in the run folder; what is given besides must agree with it. Where no checkpoint has the `vectors`
    of words, or the weights of a pretrained encoder, they are read from their file again, unless somebody has
    them.

    Raises:
        CheckpointError, DataError: something is missing, or other data or vectors were given.
    """
    description = description or read_description(out)
    settings = settings or validated(description["config"])
    try:
        parts = description["data"]
        _check_same(out, data, parts["train"])
        _check_same(out, valid, parts["valid"])
        _check_same_vectors(out, given_vectors, description)
        vocabulary = Vocabulary.load(out / VOCABULARY)
        training = _open(out, data, parts["train"]["corpus"]).remap(vocabulary)
        own = parts["valid"]["corpus"] is None
        if own:
            training, validation = held_out(training, settings)
        else:
            validation = _open(out, valid, parts["valid"]["corpus"])
            validation = validation.remap(vocabulary, users=training.users, products=training.products)
        training, validation = with_frequent_names(settings, training, validation)
        table = torch.zeros(len(vocabulary), int(description["embedding_size"]))
        fresh = vectors and not checkpoint_files(out)
        if fresh:
            table = embedding_table(settings, training, _vectors(out, given_vectors, description))
    except (KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{out / CONFIG} does not say how to resume ({type(error).__name__}: {error}); train again with --overwrite"
        ) from None
    run = new_run(
        settings, vocabulary, training.classes, table,
        multi_label=training.multi_label, text=training.text, users=training.users, products=training.products,
        saved=None if fresh else out,
    )  # fmt: skip
    run.lengths = training.length_range
    return Opened(run, training, validation, select=not own or selects(settings))


def _check_same(out: Path, given: Named | None, described: dict[str, Any]) -> None:
    if given is None:
        return
    if not given.path.exists():
        raise DataError(f"{given.path} does not exist; leave it out, {out} knows its data")
    if checksum(given.path) != described["sha256"]:
        raise DataError(
            f"{given.path} is not the data that {out} was started on, or was changed since (the checksums differ); "
            "put it back, or train again into another folder"
        )
    if given.read_as() != described["read_as"]:
        raise DataError(
            f"{given.path} is to be read as {given.read_as()}, but {out} was started with {described['read_as']}; "
            "leave that out, or train again into another folder"
        )


def _check_same_vectors(out: Path, given: Path | Vectors | None, described: dict[str, Any]) -> None:
    """A file may have moved, so its content is compared; a run from before there was a checksum knows its place alone.
    What was in memory cannot be compared."""
    if given is None:
        return
    started, known = described["vectors"], described.get("vectors_sha256")
    if isinstance(given, Vectors):
        name, same = "vectors in memory", started == "memory"
    elif not given.is_file():
        raise DataError(f"the vectors {given} do not exist; leave them out, {out} knows its own")
    else:
        name, same = str(given), str(given.resolve()) == started if known is None else sha256(given) == known
    if not same:
        before = "no vectors" if started is None else "vectors in memory" if started == "memory" else started
        raise DataError(
            f"the vectors of {out} are others: it was started with {before}, and {name} was given; leave that out, or "
            "train again into another folder"
        )


def _vectors(out: Path, given: Path | Vectors | None, described: dict[str, Any]) -> Vectors | None:
    """Those that were given and are known to be the same, or else those that the run was started with."""
    source = described["vectors"] if given is None else given
    if source is None or isinstance(source, Vectors):
        return source
    if source == "memory":
        raise DataError(f"{out} was started with vectors in memory, and saved nothing yet; give them again")
    known = described.get("vectors_sha256")
    if given is None and known is not None and Path(source).is_file() and sha256(Path(source)) != known:
        raise DataError(
            f"the vectors {source} were changed since {out} was started on them (the checksums differ); put them back, "
            "or train again with --overwrite"
        )
    return read_vectors(Path(source))


def _open(out: Path, given: Named | None, place: str) -> Corpus:
    """The corpus in the run; or the prepared one that was given, wherever it is now."""
    own = not Path(place).is_absolute()
    return Corpus.open(out / place if own or given is None else given.path)
