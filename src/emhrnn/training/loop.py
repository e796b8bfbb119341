"""The loop: for each batch, loss, gradient, step. It yields what happened and leaves progress, history, checkpoints and
stopping to whoever iterates over it."""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.models.model import DocumentModel
from emhrnn.training.arrays import save_arrays
from emhrnn.training.config import Config, TrainingConfig
from emhrnn.training.distributed import ALONE, Processes
from emhrnn.training.objective import (
    LabelLoss,
    LearnsRationales,
    Objective,
    OwnObjective,
    PlainObjective,
    make_label_loss,
)
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.progress import Step
from emhrnn.training.run import BAD_BATCH
from emhrnn.training.schedule import Position, Purpose, learning_rate, numpy_generator

COUNTED_WORDS = 200_000  # of documents that are counted at a time


@dataclass(frozen=True, eq=False)
class InOrder:
    """All documents of a corpus as batches, again at each `iter`, for what is counted or fitted in one go. With a loss,
    documents weigh what they do in it; `show` a progress bar for each reading."""

    corpus: Corpus
    label_loss: LabelLoss = field(default_factory=LabelLoss)
    words: int | None = None  # of a batch
    show: bool = False

    def __iter__(self) -> Iterator[Batch]:
        plan = BatchPlan(self.corpus.lengths, words=self.words).in_order()
        hidden = None if self.show else True
        with tqdm(total=len(self.corpus), desc="reading", unit="row", disable=hidden, leave=False) as bar:
            for rows in plan:
                yield self.label_loss.weigh(self.corpus.batch(rows))
                bar.update(len(rows))


def make_objective(
    model: DocumentModel, config: Config, corpus: Corpus, job: Processes = ALONE, *, known: int = 0
) -> Objective:
    """The objective that fits the model. Class weights come from the corpus; `known` documents came before it."""
    label_loss = make_label_loss(config.training, corpus)
    if isinstance(model, OwnObjective):
        return model.make_objective(config, label_loss, corpus, job, known=known)
    if corpus.has_spans and not isinstance(model, LearnsRationales):
        raise ConfigError(
            f"{config.model.name} does not learn from marked spans; leave out --spans-column, or use evidence"
        )
    if known or model.uncounted:
        model.count(InOrder(corpus, words=COUNTED_WORDS), label_loss.class_weights)
    return PlainObjective(model, label_loss, config.training.seed, job)


def order_of(corpus: Corpus, config: TrainingConfig, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch as row numbers; the same for the same seed and epoch."""
    documents, words = (config.batch_documents, None) if config.batch_documents else (None, config.batch_words)
    plan = BatchPlan(corpus.lengths, documents=documents, words=words)
    return plan.batches(numpy_generator(config.seed, Purpose.ORDER, epoch))


def steps(
    objective: Objective,
    optimizer: Optimizer,
    corpus: Corpus,
    config: TrainingConfig,
    position: Position,
    folder: Path | None = None,
    job: Processes = ALONE,
) -> Iterator[Step]:
    """Train from `position` on, forever up to `config.epochs`; `position` is moved along and always names the next
    step, so that saving it at any yield is a checkpoint. Each process of the job takes its share of every batch.

    Raises:
        TrainingError: loss or gradient is not finite; the batch is in `folder`, for debugging.
    """
    while position.epoch < config.epochs:
        order = order_of(corpus, config, position.epoch)
        while position.batch < len(order):
            began = time.perf_counter()
            batch = corpus.batch(order[position.batch])
            waited = time.perf_counter() - began
            rate = learning_rate(config, position.step, config.epochs * len(order))
            optimizer.set_learning_rate(rate)
            loss, notes = objective.loss(job.share(batch), position.epoch, position.step)
            value, notes = _totals(job, loss, notes)
            if not math.isfinite(value):
                raise TrainingError(_not_finite(value, position, batch, folder))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            job.sum_gradients(optimizer.parameters)
            norm = optimizer.clip(config.clip)
            if not math.isfinite(norm):
                raise TrainingError(_not_finite(norm, position, batch, folder))
            optimizer.step()
            done = Step(
                number=position.step,
                epoch=position.epoch,
                batch=position.batch,
                batches=len(order),
                loss=value,
                learning_rate=rate,
                words=batch.n_words,
                documents=batch.n_documents,
                seconds=time.perf_counter() - began,
                waited=waited,
                notes=notes,
            )
            position.step += 1
            position.batch += 1
            if done.ends_epoch:
                position.epoch, position.batch = position.epoch + 1, 0
                yield done
                break
            yield done


def _totals(job: Processes, loss: Tensor, notes: dict[str, float]) -> tuple[float, dict[str, float]]:
    """Loss and notes of the whole batch."""
    if job.size == 1:
        return float(loss.detach()), notes
    values = job.sum(torch.tensor([float(loss.detach()), *notes.values()], dtype=torch.float64)).tolist()
    return values[0], dict(zip(notes, values[1:], strict=True))


def _not_finite(value: float, position: Position, batch: Batch, folder: Path | None) -> str:
    saved = ""
    if folder is not None:
        arrays = {
            name: getattr(batch, name)
            for name in ("words", "sentence_offsets", "document_offsets", "rows", "labels", "weights")
            if getattr(batch, name) is not None
        }
        save_arrays(folder / BAD_BATCH, arrays, {"what": "the batch at which training stopped"})
        saved = f"; the batch is in {folder / BAD_BATCH}"
    return (
        f"loss or gradient is {value} at epoch {position.epoch + 1}, batch {position.batch + 1} (rows "
        f"{batch.rows[:3].tolist()}, ...){saved}; what was saved before is intact; train again with a smaller "
        "training.learning_rate or training.clip"
    )


@dataclass
class HeldSignal:
    """The signal that came meanwhile, if any."""

    signal: int | None = None


@contextmanager
def deferred_signals(wanted: bool = True) -> Iterator[HeldSignal]:
    """Defer Ctrl-C and SIGTERM until the block ends, which should be soon after the first of them; then it does what it
    would have done. A second one does so at once."""
    came = HeldSignal()
    held = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in held.items() if handler not in (None, signal.SIG_IGN)}
    if not wanted or threading.current_thread() is not threading.main_thread():  # only there may handlers be set
        held = {}

    def release() -> None:
        for number, handler in held.items():
            signal.signal(number, handler)

    def hold(number: int, _: FrameType | None) -> None:
        if came.signal is not None:
            release()
            signal.raise_signal(number)
        came.signal = number

    for number in held:
        signal.signal(number, hold)
    try:
        yield came
    finally:
        release()
    if came.signal is not None:
        signal.raise_signal(came.signal)
