"""What one batch is asked to improve: the loss of a model, with its own randomness and its own state.

A plain model has one loss, minus the log-likelihood of the labels. EM-HRNN has Algorithm 1 (`em_objective`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor, nn

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.em.blocks import exact_blocks
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.training.config import Config
from emhrnn.training.em_objective import EMObjective, witnesses
from emhrnn.training.job import ALONE, Job
from emhrnn.training.label_loss import LabelLoss, label_part, make_label_loss
from emhrnn.training.schedule import is_latent
from emhrnn.training.state import Purpose, torch_generator

COUNTED, AT_ONCE = 50_000, 1000  # documents whose pauses are counted, and how many at a time
COUNTED_WORDS = 200_000  # at a time, where all documents are counted


@runtime_checkable
class Objective(Protocol):
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
class Annealed(Protocol):
    """A model with a schedule of its own, as the multiscale networks have for the slope of their detectors."""

    def set_epoch(self, epoch: int) -> None: ...


@runtime_checkable
class Counting(Protocol):
    """A model that goes through the training documents before its first step."""

    @property
    def uncounted(self) -> bool: ...

    def count(self, batches: Iterable[Batch], class_weights: Tensor | None = None) -> None: ...


@runtime_checkable
class OwnObjective(Protocol):
    """A model that is trained in a way of its own."""

    def make_objective(
        self, config: Config, label_loss: LabelLoss, corpus: Corpus, job: Job, *, known: int
    ) -> Objective: ...


@dataclass(frozen=True, eq=False)
class _InOrder:
    """All documents of a corpus as batches, anew at each `iter`."""

    corpus: Corpus

    def __iter__(self) -> Iterator[Batch]:
        return map(self.corpus.batch, BatchPlan(self.corpus.lengths, words=COUNTED_WORDS).in_order())


@dataclass(frozen=True, eq=False)
class PlainObjective:
    """For every model without latent boundaries."""

    model: nn.Module
    label_loss: LabelLoss
    seed: int
    job: Job = ALONE

    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]:
        if isinstance(self.model, Annealed):
            self.model.set_epoch(epoch)
        output = self.model(batch, self.job.noise(torch_generator(self.seed, Purpose.DROPOUT, step)))
        return label_part(self.label_loss, self.job, output.logits, batch), {}

    def end_epoch(self) -> dict[str, float]:
        return {}

    def settled(self, epoch: int) -> bool:
        return True

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        pass


def make_objective(model: nn.Module, config: Config, corpus: Corpus, job: Job = ALONE, *, known: int = 0) -> Objective:
    """The objective that fits the model. Class weights come from the corpus; `known` documents came before it."""
    label_loss = make_label_loss(config.training, corpus)
    if is_latent(config) and config.em.estep == "exact":
        _check_exact(corpus, config.em.exact_limit)
    if isinstance(model, EMHRNN):
        seed = config.training.seed
        if model.pauses is not None and (known or model.pauses.empty):
            model.pauses.add(_portions(corpus, label_loss))
        return EMObjective(model, config.em, label_loss, seed, corpus.lengths, witnesses(corpus), job, known=known)
    if isinstance(model, OwnObjective):
        return model.make_objective(config, label_loss, corpus, job, known=known)
    if isinstance(model, Counting) and (known or model.uncounted):
        model.count(_InOrder(corpus), label_loss.class_weights)
    return PlainObjective(model, label_loss, config.training.seed, job)


def _portions(corpus: Corpus, label_loss: LabelLoss) -> Iterator[Batch]:
    """Some documents, from all over the corpus: enough to know its words. They count as they do in the loss."""
    rows = corpus.spread(COUNTED)
    for first in range(0, len(rows), AT_ONCE):
        yield label_loss.weigh(corpus.batch(rows[first : first + AT_ONCE]))


def _check_exact(corpus: Corpus, limit: int) -> None:
    """Raise a DataError for a document that cannot be enumerated now, not after the warm-up."""
    most_free = int(np.argmax(corpus.lengths - corpus.sentence_counts))
    exact_blocks(corpus.batch(np.array([most_free])), limit)
