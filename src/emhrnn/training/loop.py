"""The loop: for each batch, loss, gradient, step. It yields what happened and leaves progress, history, checkpoints and
stopping to whoever iterates over it.

An objective says what one batch is asked to improve: the loss of a model, with its own randomness and its own state. A
plain model has one loss, minus the log-likelihood of the labels. A model may have its own (`OwnObjective`).
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.models.model import DocumentModel, log_likelihood
from emhrnn.shapes import Float
from emhrnn.training.arrays import save_arrays
from emhrnn.training.config import Config, TrainingConfig
from emhrnn.training.distributed import ALONE, Processes
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.progress import Step
from emhrnn.training.run import BAD_BATCH
from emhrnn.training.schedule import Position, Purpose, learning_rate, numpy_generator, torch_generator

COUNTED_WORDS = 200_000  # of documents that are counted at a time
TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True, eq=False)
class LabelLoss:
    """Minus the log-likelihood of the labels, averaged over documents, with class weights and label smoothing. A
    document counts its own weight times that of its class."""

    class_weights: Float[Tensor, " classes"] | None = None
    smoothing: float = 0.0

    def __call__(
        self,
        logits: Float[Tensor, "documents classes"],
        labels: np.ndarray,
        weights: Float[Tensor, " documents"] | None = None,
    ) -> Float[Tensor, ""]:
        """`weights` are the documents' own."""
        y = torch.from_numpy(labels)
        loss = -log_likelihood(logits, y)  # (documents,)
        if self.smoothing and y.ndim == 1:
            # every class gets smoothing / C of the target
            uniform = -torch.log_softmax(logits, dim=1).mean(dim=1)
            loss = (1 - self.smoothing) * loss + self.smoothing * uniform
        return weighted_mean(loss, self._with_classes(y, weights))

    def weights(self, batch: Batch) -> Float[Tensor, " documents"] | None:
        """What each document counts; None: all the same."""
        return self._with_classes(torch.from_numpy(labels_of(batch)), weights_of(batch))

    def weigh(self, batch: Batch) -> Batch:
        """The batch, each document with the weight that it has in the loss."""
        weights = self.weights(batch)
        return batch if weights is None else replace(batch, weights=weights.float().numpy())

    def amount(self, batch: Batch) -> float:
        """What the mean over these documents is divided by."""
        weights = self.weights(batch)
        return float(batch.n_documents) if weights is None else float(weights.sum())

    def _with_classes(
        self, y: Tensor, weights: Float[Tensor, " documents"] | None
    ) -> Float[Tensor, " documents"] | None:
        if self.class_weights is None or y.ndim > 1:
            return weights
        of_class = self.class_weights[y]
        return of_class if weights is None else weights * of_class


def make_label_loss(settings: TrainingConfig, corpus: Corpus) -> LabelLoss:
    """The loss that the settings ask for; class weights come from the corpus."""
    weights = None
    if settings.class_weight == "balanced" and corpus.labels is not None and corpus.labels.ndim == 1:
        weights = balanced_weights(corpus.labels, len(corpus.classes), corpus.weights)
    return LabelLoss(weights, settings.label_smoothing)


def weighted_mean(
    values: Float[Tensor, " documents"], weights: Float[Tensor, " documents"] | None
) -> Float[Tensor, ""]:
    """Sum of weight times value over sum of weights; without weights, the mean. A batch without any weight gives 0."""
    if weights is None:
        return values.mean()
    return (weights * values).sum() / weights.sum().clamp_min(TINY)


def balanced_weights(labels: np.ndarray, classes: int, weights: np.ndarray | None = None) -> Float[Tensor, " classes"]:
    """Weights under which every class counts the same: documents / (classes * documents of the class), where a
    document of weight 2 is two."""
    counts = np.bincount(labels, None if weights is None else weights.astype(np.float64), minlength=classes)
    return torch.from_numpy(counts.sum() / (classes * np.where(counts > 0, counts, 1))).float()


def weights_of(batch: Batch) -> Float[Tensor, " documents"] | None:
    """The documents' own weights; None: all the same."""
    return None if batch.weights is None else torch.from_numpy(batch.weights)


def label_part(
    label_loss: LabelLoss, job: Processes, logits: Float[Tensor, "documents classes"], batch: Batch
) -> Tensor:
    """The loss of the whole batch, as far as it is that of this process's documents."""
    loss = label_loss(logits, labels_of(batch), weights_of(batch))
    return loss if job.size == 1 else job.part(loss, label_loss.amount(batch), label_loss.amount(job.whole(batch)))


def labels_of(batch: Batch) -> np.ndarray:
    """The labels of a training batch, which always has them."""
    if batch.labels is None:
        raise ValueError("a training batch needs labels")
    return batch.labels


@runtime_checkable
class Objective(Protocol):
    """What the loop asks of an objective."""

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]:
        """To be differentiated; and what there is to say about the batch, as named numbers. Where several processes
        share a batch, both are this one's part of a sum."""

    def end_epoch(self) -> dict[str, float]:
        """Get the model ready to be validated; and what there is to say about the epoch, as named numbers."""

    def settled(self, epoch: int) -> bool:
        """True when the schedule has nothing new to come, so that early stopping may decide."""

    def state_dict(self) -> dict[str, Tensor]:
        """What it remembers between steps, besides the model."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Put back what `state_dict` gave."""


@runtime_checkable
class OwnObjective(Protocol):
    """A model that is trained in a way of its own."""

    def make_objective(
        self, config: Config, label_loss: LabelLoss, corpus: Corpus, job: Processes, *, known: int
    ) -> Objective: ...


@runtime_checkable
class LearnsRationales(Protocol):
    """A model with a loss of words that people marked."""

    def rationale_loss(self, batch: Batch, generator: torch.Generator) -> Tensor: ...


@dataclass(frozen=True, eq=False)
class PlainObjective:
    """For every model without latent boundaries."""

    model: DocumentModel
    label_loss: LabelLoss
    seed: int
    job: Processes = ALONE

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]:
        self.model.set_epoch(epoch)
        output = self.model(batch, self.job.noise(torch_generator(self.seed, Purpose.DROPOUT, step)))
        loss = label_part(self.label_loss, self.job, output.logits, batch)
        if batch.marked is None:
            return loss, {}
        assert isinstance(self.model, LearnsRationales)
        marked = self.model.rationale_loss(batch, torch_generator(self.seed, Purpose.RATIONALES, step))
        if self.job.size > 1:
            marked = self.job.part(marked, self.label_loss.amount(batch), self.label_loss.amount(self.job.whole(batch)))
        return loss + marked, {}

    def end_epoch(self) -> dict[str, float]:
        return {}

    def settled(self, epoch: int) -> bool:
        return True

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        pass


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
