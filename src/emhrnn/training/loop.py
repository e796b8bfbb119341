"""The loop: for each batch, loss, gradient, step; for each epoch, validation. It yields what happened and leaves
progress, history, checkpoints and stopping to whoever iterates over it."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.batching import epoch_batches
from emhrnn.errors import TrainingError
from emhrnn.training.config import TrainingConfig
from emhrnn.training.schedule import learning_rate
from emhrnn.training.state import Position, Purpose, numpy_generator


class Objective(Protocol):
    """The loss of one batch, to be differentiated; and what it has to say about it, as named numbers."""

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]: ...

    def after_step(self, batch: Batch) -> None: ...


@dataclass(frozen=True)
class Step:
    """One batch done."""

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


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """Weight decay acts on matrices alone: shrinking biases, context vectors and word vectors has no use."""
    matrices, others = [], []
    for name, parameter in model.named_parameters():
        (matrices if parameter.ndim > 1 and not name.startswith("embedding.") else others).append(parameter)
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others, "weight_decay": 0.0}]
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=config.momentum)
    return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)


def order_of(corpus: Corpus, config: TrainingConfig, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch as row numbers; the same for the same seed and epoch."""
    return epoch_batches(
        corpus.lengths,
        numpy_generator(config.seed, Purpose.ORDER, epoch),
        documents=config.batch_documents or None,
        words=config.batch_words,
    )


def steps(
    model: nn.Module,
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    corpus: Corpus,
    config: TrainingConfig,
    position: Position,
    save_bad_batch: Callable[[Batch], str] | None = None,
) -> Iterator[Step]:
    """Train from `position` on, forever up to `config.epochs`; `position` is moved along and always names the next
    step, so that saving it at any yield is a checkpoint."""
    while position.epoch < config.epochs:
        order = order_of(corpus, config, position.epoch)
        while position.batch < len(order):
            began = time.perf_counter()
            batch = corpus.batch(order[position.batch])
            waited = time.perf_counter() - began
            rate = learning_rate(config, position.step, config.epochs * len(order))
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss, notes = objective.loss(batch, position.epoch, position.step)
            value = float(loss.detach())
            if not math.isfinite(value):
                raise TrainingError(_not_finite(value, position, batch, save_bad_batch))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            norm = float(nn.utils.clip_grad_norm_(model.parameters(), config.clip))
            if not math.isfinite(norm):
                raise TrainingError(_not_finite(norm, position, batch, save_bad_batch))
            optimizer.step()
            objective.after_step(batch)
            done = Step(
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


def _not_finite(value: float, position: Position, batch: Batch, save: Callable[[Batch], str] | None) -> str:
    saved = f"; the batch is in {save(batch)}" if save is not None else ""
    return (
        f"loss or gradient is {value} at epoch {position.epoch}, batch {position.batch} (rows {batch.rows[:3].tolist()}"
        f", ...){saved}; the last checkpoint is intact: try a smaller training.learning_rate or training.clip"
    )
