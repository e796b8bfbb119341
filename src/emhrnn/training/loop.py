"""The loop: for each batch, loss, gradient, step; for each epoch, validation. It yields what happened and leaves
progress, history, checkpoints and stopping to whoever iterates over it."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.errors import TrainingError
from emhrnn.training.config import TrainingConfig
from emhrnn.training.job import ALONE, Job
from emhrnn.training.objective import Objective
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.schedule import learning_rate, stage
from emhrnn.training.state import Position, Purpose, numpy_generator


@dataclass(frozen=True)
class Step:
    """One batch done."""

    number: int  # of steps before it, since the start
    epoch: int
    batch: int
    batches: int  # in this epoch
    loss: float
    learning_rate: float
    words: int
    documents: int
    seconds: float
    waited: float  # seconds of it spent on getting the batch
    notes: dict[str, float]

    @property
    def ends_epoch(self) -> bool:
        return self.batch + 1 == self.batches


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
    save_bad_batch: Callable[[Batch], str] | None = None,
    job: Job = ALONE,
    *,
    levels: int = 1,
) -> Iterator[Step]:
    """Train from `position` on, forever up to `config.epochs`; `position` is moved along and always names the next
    step, so that saving it at any yield is a checkpoint. Each process of the job takes its share of every batch; each
    of the `levels` has the whole course of the learning rate in its share of the epochs."""
    while position.epoch < config.epochs:
        order = order_of(corpus, config, position.epoch)
        _, first, last = stage(config.epochs, levels, position.epoch)
        below = sum(len(order_of(corpus, config, epoch)) for epoch in range(first))  # steps: no two epochs need as many
        while position.batch < len(order):
            began = time.perf_counter()
            batch = corpus.batch(order[position.batch])
            waited = time.perf_counter() - began
            rate = learning_rate(config, position.step - below, (last - first) * len(order))
            optimizer.set_learning_rate(rate)
            loss, notes = objective.loss(job.share(batch), position.epoch, position.step)
            value, notes = _totals(job, loss, notes)
            if not math.isfinite(value):
                raise TrainingError(_not_finite(value, position, batch, save_bad_batch))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            job.sum_gradients(optimizer.parameters)
            norm = optimizer.clip(config.clip)
            if not math.isfinite(norm):
                raise TrainingError(_not_finite(norm, position, batch, save_bad_batch))
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


def _totals(job: Job, loss: Tensor, notes: dict[str, float]) -> tuple[float, dict[str, float]]:
    """Loss and notes of the whole batch."""
    if job.size == 1:
        return float(loss.detach()), notes
    values = job.sum(torch.tensor([float(loss.detach()), *notes.values()], dtype=torch.float64)).tolist()
    return values[0], dict(zip(notes, values[1:], strict=True))


def _not_finite(value: float, position: Position, batch: Batch, save: Callable[[Batch], str] | None) -> str:
    saved = f"; the batch is in {save(batch)}" if save is not None else ""
    return (
        f"loss or gradient is {value} at epoch {position.epoch + 1}, batch {position.batch + 1} (rows "
        f"{batch.rows[:3].tolist()}, ...){saved}; what was saved before is intact; train anew with a smaller "
        "training.learning_rate or training.clip"
    )
