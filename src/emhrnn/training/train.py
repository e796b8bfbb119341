"""From named data to a run folder: `new_run_at` prepares the data and describes the run, `fit` trains it."""

import functools
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus import Corpus, is_corpus
from emhrnn.corpus.readers.source import data_files
from emhrnn.corpus.summary import summarise
from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.evaluation.scores import METRICS, Scores
from emhrnn.files import sha256
from emhrnn.models.row import VECTORS
from emhrnn.models.table import MODELS
from emhrnn.text import Vectors, read_vectors
from emhrnn.training.arrays import load_arrays, load_into
from emhrnn.training.card import write_metrics
from emhrnn.training.compatibility import migrated_tensors
from emhrnn.training.config import Config
from emhrnn.training.data import (
    Named,
    check_ids,
    check_same_kind,
    described,
    held_out,
    material_line,
    other_corpus,
    selects,
    training_corpus,
    untrained,
    with_frequent_names,
)
from emhrnn.training.distributed import Processes, name_of_job
from emhrnn.training.folder import Checkpoints, run_folder
from emhrnn.training.loop import InOrder, Objective, deferred_signals, make_label_loss, make_objective, steps
from emhrnn.training.optimizer import Optimizer, WeightAverage
from emhrnn.training.progress import Epoch, FitResult, Meter, Step, TrainingContext, append_history, write_history
from emhrnn.training.run import CORPUS, HISTORY, WEIGHTS, Run, describe, save_weights
from emhrnn.training.schedule import Best, Position
from emhrnn.training.validation import end_training, fold_predictions, validate, validate_epoch, with_folds

TRAIN, VALID = Path(CORPUS, "train"), Path(CORPUS, "valid")  # in the run folder
DEFAULT = TrainingContext()


@dataclass(frozen=True, eq=False)
class Opened:
    """A described run with its data, ready to be trained; `finished` is what training came to, where it is done. The
    validation data may `select` the best epoch, or are a part of the training data."""

    run: Run
    train: Corpus
    valid: Corpus
    finished: FitResult | None = None
    select: bool = True


@contextmanager
def new_run_at(
    out: Path,
    data: Named,
    config: Config,
    context: TrainingContext = DEFAULT,
    *,
    valid: Named | None = None,
    vectors: Path | Vectors | None = None,
    overwrite: bool = False,
) -> Iterator[Opened]:
    """Prepare the data and describe an untrained run in the folder `out`, to be trained in the block. In a job of
    several processes this is for the first one.

    When this or the block fails before the first epoch or checkpoint is done, `out` is put back as it was; after that,
    it holds the best model so far, and `resume` continues from the last checkpoint.

    Raises:
        DataError: the data cannot be used, or `out` is taken. With `overwrite`, a run that is there is replaced as soon
            as the first epoch of the new one is done.
    """
    file = vectors if isinstance(vectors, Path) else None
    table_of = read_vectors(vectors) if isinstance(vectors, Path) else vectors
    check_settings(config, table_of)
    if out.exists() and data.path.resolve().is_relative_to(out.resolve()):
        raise DataError(f"the data {data.path} lies inside {out}, where the run is to be written; give another folder")
    if out.resolve().is_relative_to(data.path.resolve()) and data_files(data.path) == [data.path]:
        raise DataError(f"{out} lies inside the data, whose folders are classes; give a folder outside {data.path}")
    with run_folder(out, overwrite=overwrite), context.job.watched():
        config, training, validation = corpora_of(
            data, valid, out, config, table_of, progress=context.progress, folds=context.job.size == 1
        )
        select = valid is not None or selects(config)
        run = untrained(config, training, table_of, validated=select)
        describe(
            out,
            run,
            data={
                "train": described(data, training, _place(out, TRAIN, data)),
                "valid": described(valid or data, validation, None if valid is None else _place(out, VALID, valid)),
            },
            vectors=None if vectors is None else str(file.resolve()) if file else "memory",
            vectors_sha256=None if file is None else sha256(file),
            command=shlex.join(sys.argv),
            job=name_of_job(),
        )
        context.job.tell()
        if context.progress:
            sys.stderr.write(material_line(data.path.name, training, validation, config.data.folds) + "\n")
            for problem in summarise(training.whole()).problems:
                context.say(f"{data.path.name}: {problem}")
            usual = config.changed_settings()
            chosen = [f"{name}={value}" for name, value in run.config.changed_settings().items() if name not in usual]
            if chosen:
                sys.stderr.write(f"Defaults that suit the data: {', '.join(chosen)}\n")
        yield Opened(run, training, validation, select=select)


def corpora_of(
    data: Named,
    valid: Named | None,
    out: Path,
    config: Config,
    vectors: Vectors | None,
    *,
    progress: bool,
    folds: bool = False,
) -> tuple[Config, Corpus, Corpus]:
    """Training and validation data, in the same words and classes; raw data is prepared in the folder `out`. The
    settings get `data.folds` where `folds` allows it and documents are few."""
    corpus = training_corpus(data, out / TRAIN, config, vectors, progress=progress)
    if not corpus.labelled:
        raise DataError(f"{data.path} has no labels; training needs a label for every document")
    corpus.check_trainable()
    if valid is None:
        config = with_folds(config, corpus) if folds else config
        return config, *with_frequent_names(config, *held_out(corpus, config))
    validation = other_corpus(valid, out / VALID, corpus, progress=progress)
    if not validation.labelled:
        raise DataError(f"{valid.path} has no labels; validation data needs a label for every document")
    check_same_kind(valid.path, validation, multi_label=corpus.multi_label)
    check_ids(config, valid.path, validation.report.columns)
    return config, *with_frequent_names(config, corpus, validation)


def _place(out: Path, own: Path, data: Named) -> Path:
    """Where the corpus is: in the run if it was prepared for it."""
    return own if is_corpus(out / own) else data.path.resolve()


class TrainingState:
    """Everything that changes while a run is trained; random numbers follow from the position."""

    def __init__(self, run: Run, objective: Objective, optimizer: Optimizer, meter: Meter) -> None:
        self.run, self.objective, self.optimizer, self.meter = run, objective, optimizer, meter
        self.average = WeightAverage(run.model, run.config.training.average_epochs)
        self.position, self.best = Position(), Best()
        self.epochs: list[Epoch] = []
        self.best_weights: dict[str, Tensor] | None = None  # in the run folder, too, and not in a checkpoint

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint, with `note`."""
        parts = {
            "model": self.run.model.state_dict(),
            "objective": self.objective.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "average": self.average.state_dict(),
        }
        return {f"{part}/{name}": tensor for part, state in parts.items() for name, tensor in state.items()}

    def note(self) -> dict[str, Any]:
        return {
            "position": asdict(self.position),
            "best": asdict(self.best),
            "epochs": [epoch.to_dict() for epoch in self.epochs],
            "meter": self.meter.state(),
        }

    def restore(self, path: Path, arrays: dict[str, np.ndarray], note: dict[str, Any], folder: Path | None) -> None:
        """Put back a checkpoint, and find the weights of the best epoch in the run folder."""
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "objective": {}, "optimizer": {}, "average": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = torch.as_tensor(array)
        load_into(self.run.model, parts["model"], path)
        self.objective.load_state_dict(parts["objective"])
        self.optimizer.load_state_dict(parts["optimizer"])
        self.average.load_state_dict(parts["average"])
        self.position, self.best = Position(**note["position"]), Best(**note["best"])
        self.epochs = [Epoch(**epoch) for epoch in note["epochs"]]
        self.meter.load_state(note["meter"])
        # The weights on disk may be older than the checkpoint, when training was killed between the two: then the
        # checkpoint, at the end of the best epoch, has them. Or newer, when an older checkpoint had to do: then
        # training comes by that epoch again.
        if self.best.epoch >= 0 and self.position.batch == 0 and self.best.epoch == self.position.epoch - 1:
            self.keep_best(folder)
        elif self.best.epoch >= 0 and folder is not None and (folder / WEIGHTS).is_file():
            weights, saved = load_arrays(folder / WEIGHTS)
            if saved.get("epoch") == self.best.epoch:
                now = migrated_tensors(self.run.config.model.name, weights)
                self.best_weights = {name: torch.as_tensor(array) for name, array in now.items()}

    def keep_best(self, folder: Path | None) -> None:
        """The model as it is now, with averaged weights, is the best."""
        with self.average.applied():
            self.best_weights = {name: t.clone() for name, t in self.run.model.state_dict().items()}
            if folder is not None:
                save_weights(folder, self.run, self.best.epoch)


def fit(
    run: Run,
    train: Corpus,
    valid: Corpus,
    context: TrainingContext = DEFAULT,
    *,
    folder: Path | None = None,
    select: bool = True,
    judge: Callable[[int], Scores] | None = None,
) -> FitResult:
    """Train until the best epoch is `patience` epochs ago or `epochs` are done; the run then has the weights of the
    best epoch. Without `select`, all epochs are done, and it has those of the last. `judge` scores an epoch; by default
    the validation data does. With `data.folds`, and the training data as validation data, models of the folds are
    trained first, and their scores decide (validation.py). With the folder of a described run,
    history, best weights and checkpoints are on disk as soon as they exist, training continues from the newest
    checkpoint, if there is any, as if it had never stopped, and Ctrl-C and SIGTERM wait until a step is done and saved.
    In a job of several processes, all of them call this."""
    job, config, own = context.job, run.config.training, folder if context.job.first else None
    if select:  # else it may be a few documents more for a trained run
        train.check_trainable()
    check_label_settings(run, train)
    run.uncalibrate()  # one that was trained before continues from what it has learned
    if config.threads:
        torch.set_num_threads(config.threads)
    if run.model.fits_at_once:
        if job.size > 1:
            raise ConfigError(f"{run.config.model.name} is fitted at once by one process; start it without torchrun")
        return _fit_at_once(run, train, valid, context, folder)
    crossed, last = None, config.epochs
    if run.config.data.folds and valid is train:
        crossed = fold_predictions(run, train, own, show=context.progress)
        judge, last = functools.partial(crossed.scores, run), crossed.best_epoch(run) + 1
    job.copy_first(run.model.state_dict().values())
    objective = make_objective(run.model, run.config, train, job)
    optimizer = Optimizer(run.model, config, indicator_pace=run.config.em.pace)
    now = TrainingState(
        run, objective, optimizer, Meter(run.config, len(train) // job.size, show=context.progress and job.first)
    )
    checkpoints = (
        None if folder is None else Checkpoints(folder, run, [train, valid], say=context.say, writes=job.first)
    )
    if checkpoints is not None and (found := checkpoints.load()):
        now.restore(*found, own)
        if own is not None:
            write_history(own / HISTORY, now.epochs)
    with now.meter, deferred_signals(checkpoints is not None) as came:
        ahead = steps(objective, optimizer, train, config, now.position, own, job)
        stopped = 0
        while (
            not stopped
            and now.position.epoch < last
            and not (select and now.best.waited >= config.patience and objective.settled(now.position.epoch - 1))
        ):
            step = next(ahead, None)
            if step is None:
                break
            now.meter.add(step)
            now.average.update(step.number, step.batches)
            if step.ends_epoch:
                _end_epoch(now, step, valid, job, judge, select=select)
            # A signal may reach one process first, and clocks differ: all of them stop or save at the same step.
            stopped, due = job.largest([came.signal or 0, checkpoints is not None and checkpoints.due])
            if checkpoints is not None and (step.ends_epoch or due or stopped):
                checkpoints.save(now.position.step, now.tensors(), now.note())  # first: the rest is made again from it
            context.step_done(step)
            if not step.ends_epoch:
                continue
            epoch = now.epochs[-1]
            if own is not None:
                append_history(own / HISTORY, epoch)
            if epoch.best:
                now.keep_best(own)
            context.epoch_done(epoch)
        came.signal = came.signal or stopped or None
    if job.first:
        if now.best_weights is None:
            raise CheckpointError(
                f"the weights of the best epoch are not in {folder}; copy {WEIGHTS} there again, or train again"
            )
        run.model.load_state_dict(now.best_weights)
    job.copy_first(run.model.state_dict().values())
    logits = None if crossed is None else crossed.logits[now.best.epoch]
    fitted = FitResult(now.epochs, now.best, *end_training(run, valid, own, now.best.epoch, job, logits))
    if own is not None:
        write_metrics(own, run, fitted)
    return fitted


def _end_epoch(
    now: TrainingState,
    step: Step,
    valid: Corpus,
    job: Processes,
    judge: Callable[[int], Scores] | None,
    *,
    select: bool,
) -> None:
    """Validate, compare with the best, and write down what happened."""
    run, objective, metric = now.run, now.objective, now.run.config.training.metric
    if not select or (objective.settled(step.epoch) and not objective.settled(step.epoch - 1)):
        now.best = Best()  # a model from before it learned its boundaries is not what was asked for
    notes = objective.end_epoch()
    job.copy_first([*run.model.state_dict().values(), *now.average.values.values()])  # machines round differently
    with now.average.applied():
        scores = validate_epoch(run, valid, job) if judge is None else judge(step.epoch)
    values = torch.tensor([METRICS[metric] * scores.metrics()[metric], scores.loss], dtype=torch.float64)
    job.copy_first([values])  # or one process might stop where another continues
    is_best = now.best.update(step.epoch, *values.tolist())
    now.epochs.append(now.meter.end_epoch(step, scores, is_best, notes))


def _fit_at_once(run: Run, train: Corpus, valid: Corpus, context: TrainingContext, folder: Path | None) -> FitResult:
    """For models that scikit-learn or fastText fit: one epoch, whatever the settings say."""
    began = time.perf_counter()
    batches = InOrder(train, make_label_loss(run.config.training, train), show=context.progress)
    run.model.fit(batches, run.config.training.seed)
    seconds = time.perf_counter() - began
    scores = validate(run, valid)
    some = train.select(train.spread(len(valid)))  # all would cost as much as the fit of some models
    epoch = Epoch(
        epoch=0,
        phase="fit",
        train_loss=validate(run, some).loss,
        learning_rate=0.0,
        valid=scores.metrics(),
        words_per_second=float(train.lengths.sum()) / seconds,
        seconds=seconds,
        waiting=0.0,
        best=True,
    )
    if folder is not None:
        write_history(folder / HISTORY, [epoch])
        save_weights(folder, run, 0)
    context.epoch_done(epoch)
    fitted = FitResult([epoch], Best(0, scores.accuracy), *end_training(run, valid, folder, 0))
    if folder is not None:
        write_metrics(folder, run, fitted)
    return fitted


def check_label_settings(run: Run, train: Corpus) -> None:
    """Raise a ConfigError for settings of the loss that this model, or several labels per document, would leave unused
    in silence."""
    settings = run.config.training
    asked = {"class_weight": settings.class_weight != "none", "label_smoothing": settings.label_smoothing > 0}
    for name in (name for name, is_asked in asked.items() if is_asked):
        given = f"training.{name} = {getattr(settings, name)}"
        instead = ", or weigh rows with --weight-column" if name == "class_weight" else ""
        if name == "label_smoothing" and run.model.fits_at_once:
            raise ConfigError(f"{given}, but {run.config.model.name} is fitted in one go, without it; leave it out")
        if train.multi_label:
            raise ConfigError(
                f"{given} is for one label per document, the data have a list of them; leave it out{instead}"
            )


def check_settings(config: Config, vectors: Vectors | None) -> None:
    """Raise a ConfigError, before any data is read, for settings that do not fit the word vectors, for a model that
    needs vectors and has none, or for files that are missing."""
    name, size = config.model.name, config.embedding_size
    if "embedding_size" in config.model.model_fields_set and vectors is not None and vectors.size != size:
        raise ConfigError(
            f"model.embedding_size is {size} and the vectors have {vectors.size} numbers; leave it out, they decide"
        )
    if VECTORS in MODELS[name].needs and vectors is None:  # random ones would say nothing
        raise ConfigError(
            f"{name} needs pretrained word vectors, and none were given; give --vectors FILE, in Python vectors="
        )
    config.model.check_files()
