"""What one batch is asked to improve: the loss of a model, with its own randomness and its own state.

A plain model has one loss, minus the log-likelihood of the labels. A model may have its own (`OwnObjective`).
"""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.models.model import DocumentModel
from emhrnn.models.output import log_likelihood
from emhrnn.shapes import Float
from emhrnn.training.config import Config, TrainingConfig
from emhrnn.training.distributed import ALONE, Processes
from emhrnn.training.schedule import Purpose, torch_generator

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
