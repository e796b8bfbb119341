"""Train a run on a corpus: the loop, with validation, history, the best weights and a view of it around it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from emhrnn.corpus import BatchPlan, Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.evaluation.calibration import Calibration
from emhrnn.evaluation.scores import METRICS, Scores
from emhrnn.models.fitting import Fitted
from emhrnn.training import history
from emhrnn.training.best_model import BestModel
from emhrnn.training.calibrating import end_training, validate, validate_epoch
from emhrnn.training.checkpoint import save_tensors
from emhrnn.training.checkpointing import Checkpoints, Progress
from emhrnn.training.history import Epoch
from emhrnn.training.job import ALONE, Job
from emhrnn.training.label_loss import LabelLoss, make_label_loss
from emhrnn.training.loop import Step, steps
from emhrnn.training.meter import Meter
from emhrnn.training.objective import make_objective
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.run import HISTORY, Run, save_weights
from emhrnn.training.state import Best
from emhrnn.training.stopping import signals_held


@dataclass
class Result:
    """What training came to. The run's model holds the weights of the best epoch."""

    epochs: list[Epoch]
    best: Best
    scores: Scores  # of the best epoch on the validation data
    calibration: Calibration | None = None  # fitted on the validation data, too


def fit(
    run: Run,
    train: Corpus,
    valid: Corpus,
    *,
    folder: Path | None = None,
    checkpoints: Checkpoints | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    job: Job = ALONE,
) -> Result:
    """Train until the best epoch is `patience` epochs ago or `epochs` are done. With a folder, the history and the
    best weights are on disk as soon as they exist. With checkpoints, training goes on from the newest one, if there is
    any, as if it had never stopped; and Ctrl-C and SIGTERM wait until a step is done and saved. In a job of several
    processes, all of them call this, and the first alone has a folder to write to."""
    train.check_trainable()
    check_label_settings(run, train)
    run.uncalibrate()  # one that was trained before goes on from what it has learned
    config = run.config.training
    if config.threads:
        torch.set_num_threads(config.threads)
    if isinstance(run.model, Fitted):
        if job.size > 1:
            raise ConfigError(f"{run.config.model.name} is fitted at once by one process; start it without torchrun")
        return _fit_at_once(run, run.model, train, valid, folder, progress, on_epoch)
    job.copy_first(run.model.state_dict().values())
    objective = make_objective(run.model, run.config, train, job)
    optimizer = Optimizer(run.model, config, indicator_pace=run.config.em.pace)
    now = Progress(run.model, objective, optimizer, Meter(run.config, show=progress and job.first))
    best = BestModel(run, folder)
    if checkpoints is not None and checkpoints.load(now):
        best.find(now)
        if folder is not None:
            history.write(folder / HISTORY, now.epochs)
    with now.meter, signals_held(checkpoints is not None) as stop:
        ahead = steps(
            objective, optimizer, train, config, now.position, _saver(folder), job, levels=run.config.model.levels
        )
        stopped = 0
        while not stopped and not _waited_enough(now, config.patience):
            step = next(ahead, None)
            if step is None:
                break
            now.meter.add(step)
            if step.ends_epoch:
                _end_epoch(run, now, step, valid, job)
            # A signal may reach one process first, and clocks differ: all of them stop or save at the same step.
            stopped, due = job.largest([stop.signal or 0, checkpoints is not None and checkpoints.due])
            if checkpoints is not None and (step.ends_epoch or due):
                checkpoints.save(now)  # first: what follows is made again from it
            if on_step is not None:
                on_step(step)
            if not step.ends_epoch:
                continue
            epoch = now.epochs[-1]
            if folder is not None:
                history.append(folder / HISTORY, epoch)
            if epoch.best:
                best.keep(step.epoch)
            if on_epoch is not None:
                on_epoch(epoch)
        if stopped and checkpoints is not None:
            checkpoints.save(now)
        stop.signal = stop.signal or stopped or None
    if job.first:
        best.restore()
    job.copy_first(run.model.state_dict().values())
    return Result(now.epochs, now.best, *end_training(run, valid, folder, now.best.epoch, job))


def check_label_settings(run: Run, train: Corpus) -> None:
    """Raise a ConfigError for settings of the loss that this model, or several labels per document, would leave unused
    in silence."""
    settings = run.config.training
    asked = {"class_weight": settings.class_weight != "none", "label_smoothing": settings.label_smoothing > 0}
    for name in (name for name, is_asked in asked.items() if is_asked):
        given = f"training.{name} = {getattr(settings, name)}"
        instead = ", or weigh rows with --weight-column" if name == "class_weight" else ""
        if name == "label_smoothing" and isinstance(run.model, Fitted):
            raise ConfigError(f"{given}, but {run.config.model.name} is fitted in one go, without it; leave it out")
        if train.multi_label:
            raise ConfigError(
                f"{given} is for one label per document, the data have a list of them; leave it out{instead}"
            )


def _waited_enough(now: Progress, patience: int) -> bool:
    return now.best.waited >= patience and now.objective.settled(now.position.epoch - 1)


def _end_epoch(run: Run, now: Progress, step: Step, valid: Corpus, job: Job) -> None:
    """Validate, compare with the best, and write down what happened."""
    metric, objective = run.config.training.metric, now.objective
    if objective.settled(step.epoch) and not objective.settled(step.epoch - 1):
        now.best = Best()  # a model from before it learned its boundaries is not what was asked for
    notes = objective.end_epoch()
    job.copy_first(run.model.state_dict().values())  # machines of different kinds round differently
    scores = validate_epoch(run, valid, job)
    value = torch.tensor([METRICS[metric] * scores.metrics()[metric]], dtype=torch.float64)
    job.copy_first([value])  # or one process might stop where another goes on
    is_best = now.best.update(step.epoch, float(value))
    now.epochs.append(now.meter.end_epoch(step, scores, is_best, notes))


def _fit_at_once(
    run: Run,
    model: Fitted,
    train: Corpus,
    valid: Corpus,
    folder: Path | None,
    progress: bool,
    on_epoch: Callable[[Epoch], None] | None,
) -> Result:
    """For models that scikit-learn or fastText fit: one epoch, whatever the settings say."""
    began = time.perf_counter()
    batches = _Batches(train, make_label_loss(run.config.training, train), show=progress)
    model.fit(batches, run.config.training.seed)
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
        history.write(folder / HISTORY, [epoch])
        save_weights(folder, run, 0)
    if on_epoch is not None:
        on_epoch(epoch)
    return Result([epoch], Best(0, scores.accuracy), *end_training(run, valid, folder, 0))


@dataclass(frozen=True, eq=False)
class _Batches:
    """A corpus as batches, anew at each `iter`, with a progress bar for each reading. Documents weigh what they do in
    the loss."""

    corpus: Corpus
    label_loss: LabelLoss
    show: bool

    def __iter__(self) -> Iterator[Batch]:
        plan = BatchPlan(self.corpus.lengths).in_order()
        for rows in tqdm(plan, desc="reading", unit="batch", disable=None if self.show else True, leave=False):
            yield self.label_loss.weigh(self.corpus.batch(rows))


def _saver(folder: Path | None) -> Callable[[Batch], str] | None:
    if folder is None:
        return None

    def save(batch: Batch) -> str:
        path = folder / "bad-batch.safetensors"
        arrays = {
            name: torch.from_numpy(np.ascontiguousarray(getattr(batch, name)))
            for name in ("words", "sentence_offsets", "document_offsets", "rows", "labels", "weights")
            if getattr(batch, name) is not None
        }
        save_tensors(path, arrays, {"what": "the batch at which training stopped"})
        return str(path)

    return save
