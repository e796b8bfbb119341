"""`emhrnn.train`: a classifier from labelled documents, in one call. The command line only parses and calls this."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from emhrnn.api import Model
from emhrnn.corpus import Columns, is_corpus
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.phrases import LOW_RATE, collapse
from emhrnn.text import Vectors, read_vectors
from emhrnn.training.config import Config, EMConfig, make_config, validated
from emhrnn.training.data import Named, learned_from
from emhrnn.training.fit import Result
from emhrnn.training.folder import begun_by_this_job
from emhrnn.training.history import Epoch
from emhrnn.training.job import joined
from emhrnn.training.loop import Step
from emhrnn.training.resume import follow
from emhrnn.training.resume import resume as resume_run
from emhrnn.training.run import is_run
from emhrnn.training.schedule import is_latent
from emhrnn.training.tensorboard import FOLDER, TensorBoard
from emhrnn.training.train import Trained as TrainedRun
from emhrnn.training.train import train as train_run


class Hooks(TypedDict, total=False):
    """What is called as training goes on."""

    on_epoch: Callable[[Epoch], None]
    on_step: Callable[[Step], None]


@dataclass(frozen=True, eq=False)
class Trained:
    """What training gave: the model, and how it came to be."""

    model: Model
    fitted: Result
    folder: Path
    skipped: dict[str, int]  # rows of the data that could not be used, by reason
    repaired: dict[str, int]  # documents of the data whose text was mended, by what was wrong
    valid_skipped: dict[str, int]  # the same of validation data that was given
    valid_repaired: dict[str, int]


def train(
    data: str | Path | None,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    config: Config | None = None,
    vectors: str | Path | Vectors | None = None,
    valid: str | Path | None = None,
    split: str | None = None,
    valid_split: str | None = None,
    text_column: str | None = None,
    label_column: str | None = None,
    weight_column: str | None = None,
    format: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    tensorboard: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> Trained:
    """Train on a file in any format, a folder per class or a prepared corpus, and leave a run folder at `out`.

    Args:
        settings: values by name, for example {"training.epochs": 3, "training.seed": 7}.
        config: all settings, instead of `settings`, for example from `make_config`.
        vectors: pretrained word vectors, or a file of them.
        valid: validation data; by default 10 % of the data.
        split: train on the rows whose split column says so.
        valid_split: validate on the rows of `data` whose split column says so.
        text_column, label_column, format: of the data and of `valid`; by default guessed.
        weight_column: how often a row of the data counts in training; validation counts every row once.
        overwrite: replace a run that is at `out`.
        resume: go on with the run at `out`, if there is one, as if it had never stopped. Data, vectors and settings may
            be left out (data: None); what is given must be the same, but for `training.epochs`, `patience`, `threads`
            and `checkpoint_seconds`. With more epochs, a finished run trains on. Processes that torchrun has started
            again go on with the run that they had begun in any case.
        say: takes what there is to tell about damaged checkpoints.
        tensorboard: write the numbers of training to RUN/tensorboard, too (needs the extra).
        progress: a live view in a terminal, else a line per epoch, on stderr.

    Raises:
        EmhrnnError: the data, a setting or `out` cannot be used; the message says what to do.
    """
    if settings is not None and config is not None:
        raise ConfigError("settings and config were given; give one of them")
    if valid is not None and valid_split is not None:
        raise ConfigError("the validation data is given twice, as data and as a split; give one of them")
    if valid_split is not None and split in (None, valid_split):
        raise ConfigError(
            f"the rows of the split {valid_split!r} would be trained on, too; name those to train on with --split"
        )
    if resume and overwrite:
        raise ConfigError("resume and overwrite were both given; resume goes on with the run, overwrite replaces it")
    going_on = (resume or begun_by_this_job(Path(out))) and is_run(Path(out))
    if data is None and not going_on:
        why = f"there is no run at {out} to go on with" if resume else "no data was given"
        raise DataError(f"{why}; give the data to train on")
    columns = Columns(text=text_column, label=label_column)
    weighted = replace(columns, weight=weight_column)
    valid_data = None
    if valid_split is not None and data is not None:
        valid_data = Named(path=Path(data), format=format, columns=columns, split=valid_split)
    elif valid is not None:  # what is said of the data holds for raw validation data too
        raw = not is_corpus(Path(valid))
        valid_data = Named(path=Path(valid), format=format, columns=columns) if raw else Named(path=Path(valid))
    named = None if data is None else Named(path=Path(data), format=format, columns=weighted, split=split)
    file = None if vectors is None or isinstance(vectors, Vectors) else Path(vectors)
    chosen = config or with_settings(make_config(), settings or {})
    with joined() as job, TensorBoard(Path(out) / FOLDER) if tensorboard and job.first else nullcontext() as board:
        hooks = Hooks() if board is None else Hooks(on_epoch=board.epoch, on_step=board.step)
        if not job.first:
            trained = follow(Path(out), job)
        elif going_on or named is None:
            trained = resume_run(
                Path(out), data=named, valid=valid_data, config=chosen,
                vectors=vectors if isinstance(vectors, Vectors) else file, progress=progress, say=say, job=job, **hooks,
            )  # fmt: skip
        else:
            trained = train_run(
                named,
                Path(out),
                config=chosen,
                valid=valid_data,
                vectors=vectors if isinstance(vectors, Vectors) else None if file is None else read_vectors(file),
                vectors_file=file,
                overwrite=overwrite,
                progress=progress,
                job=job,
                **hooks,
            )
    if job.first:
        for wrong in filter(None, (_never_learned(trained), _collapsed(trained))):
            say(wrong)
        if valid_data is not None and learned_from(Path(out), valid_data):
            say(f"{valid_data.path} holds documents that were trained on, too: validation says little about new ones")
    told, held_out = trained.train.report, trained.valid.report
    given = trained.valid.path != trained.train.path  # else it is a part of the data, which tells of both
    return Trained(
        Model(trained.run), trained.fitted, Path(out),
        skipped=told.skipped, repaired=told.repaired,
        valid_skipped=held_out.skipped if given else {}, valid_repaired=held_out.repaired if given else {},
    )  # fmt: skip


def _never_learned(trained: TrainedRun) -> str | None:
    """Where the warm-up left no epoch for EM."""
    config, epochs = trained.run.config, trained.fitted.epochs
    levels = config.model.levels
    em = {"em"} if levels == 1 else {f"{level} em" for level in range(1, levels + 1)}
    if not is_latent(config) or config.em.estep == "none" or em <= {epoch.phase for epoch in epochs}:
        return None
    each = "" if levels == 1 else f" in each of the {levels} levels"
    return (
        f"phrases were not learned: {len(epochs)} epoch{'s' * (len(epochs) != 1)} leave none for EM{each}; raise "
        f"training.epochs, or lower em.warmup_epochs ({config.em.warmup_epochs})"
    )


def _collapsed(trained: TrainedRun) -> str | None:
    """What has become of learned phrases, and what to do about it."""
    phrases = trained.fitted.scores.phrases
    if not is_latent(trained.run.config) or phrases is None:
        return None
    wrong = collapse(phrases, int(trained.valid.sentence_counts.sum()))
    ends = float(trained.valid.sentence_counts.sum() / trained.valid.lengths.sum())
    return None if wrong is None else f"{wrong}; {advice(trained.run.config.em, ends)}"


def advice(em: EMConfig, ends: float) -> str:
    """What gives phrases a length again, where `ends` is the share of words that end a sentence, and so a phrase."""
    if em.impute != "rate" or not em.hold_rate:
        return "--set em.impute=rate --set em.hold_rate=true keeps em.rate of them"
    if em.rate - ends < LOW_RATE * (1 - ends):
        return f"sentence ends alone are {ends:.1%} of the words, so em.rate = {em.rate:g} leaves no others; raise it"
    return f"em.rate is {em.rate:g}; give another"


def with_settings(config: Config, settings: Mapping[str, Any]) -> Config:
    """The same configuration with other values, given by their names such as "training.epochs"."""
    values = config.model_dump(exclude_unset=True)
    for name, value in settings.items():
        section, dot, key = name.partition(".")
        if not dot:
            raise ConfigError(f"cannot read the setting {name!r}; write section.key, e.g. training.epochs")
        values.setdefault(section, {})[key] = value
    return validated(values)
