"""Reading `vocabulary`: EM-HRNN learns all its parameters from the labels alone.

Theta adapts to whatever segmentation it is trained on, right or wrong, and then the posterior confirms it. So the first
epoch takes pi = 1/2, and dropout keeps theta from learning the documents by heart.

One step, on a batch: E by the method's blocks, given the segmentation that each document had last (block Gibbs); theta
by the log-likelihood of a posterior sample; pi by its logistic loss on gamma. With r frozen, both are gradients of Q.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks, covered
from emhrnn.em.likelihood import batch_labels
from emhrnn.em.posterior import Posterior
from emhrnn.em.steps import e_step, m_step_pi
from emhrnn.models import segmentation
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.models.output import log_likelihood
from emhrnn.paper.simulation.generator import CLASSES, World, take

ChooseBlocks = Callable[[Batch, np.random.Generator], Blocks]


@dataclass(frozen=True)
class Schedule:
    epochs: int = 12
    uniform: int = 1  # epochs with pi = 1/2
    documents: int = 250  # of a batch
    learning_rate: float = 1e-2  # the highest: it rises from, and falls to, almost nothing
    dropout: float = 0.15
    clip: float = 1.0


def learn_all(
    world: World,
    choose_blocks: ChooseBlocks,
    seed: int,
    schedule: Schedule,
    *,
    printed_q: bool = False,
    watch: Callable[[int, EMHRNN], None] = lambda *_: None,
) -> EMHRNN:
    learner = _Learner(world, choose_blocks, seed, schedule, printed_q)
    for epoch in range(schedule.epochs):
        learner.run_epoch(epoch)
        watch(epoch, learner.model)
    return learner.model


class _Learner:
    """The model, its optimiser, and the segmentation that each training document had last."""

    def __init__(
        self, world: World, choose_blocks: ChooseBlocks, seed: int, schedule: Schedule, printed_q: bool
    ) -> None:
        self.documents, self.choose_blocks, self.schedule, self.printed_q = (
            world.train, choose_blocks, schedule, printed_q,
        )  # fmt: skip
        self.random = np.random.default_rng([seed, 2])
        self.dropout = torch.Generator().manual_seed(int(self.random.integers(2**62)))
        table = world.teacher.embedding.table
        assert isinstance(table, Tensor)
        self.model = EMHRNN(table=table, classes=CLASSES, generator=self.dropout, dropout=schedule.dropout, rate=0.5)
        n = self.documents.n_documents
        self.z = segmentation.random(self.documents, 0.5, self.random).reshape(n, -1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=schedule.learning_rate)
        self.pace = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            schedule.learning_rate,
            total_steps=schedule.epochs * -(-n // schedule.documents),
            pct_start=0.15,
        )

    def run_epoch(self, epoch: int) -> None:
        order = self.random.permutation(self.documents.n_documents)
        for begin in range(0, len(order), self.schedule.documents):
            rows = order[begin : begin + self.schedule.documents]
            loss = self._loss(take(self.documents, rows), rows, uniform=epoch < self.schedule.uniform)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(self.model.parameters(), self.schedule.clip)
            self.optimizer.step()
            self.pace.step()

    def _loss(self, batch: Batch, rows: Int64[np.ndarray, " documents"], *, uniform: bool) -> Float[Tensor, ""]:
        states = self.model.words(batch, self.dropout)
        last = self.z[rows].reshape(-1)
        posterior = self._posterior(batch, states, last, uniform=uniform)
        z = posterior.segmentation(last, posterior.sample(self.random))
        self.z[rows] = z.reshape(len(rows), -1)
        theta = -log_likelihood(self.model.encode(batch, states, z, self.dropout).logits, batch_labels(batch)).mean()
        mask = torch.from_numpy(covered(posterior.blocks, batch.n_words))
        per_document = float(mask.sum()) / batch.n_documents  # Q sums over words, and is averaged over documents
        return theta + per_document * m_step_pi(states.a, posterior.marginals(), mask)

    def _posterior(
        self, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"], *, uniform: bool
    ) -> Posterior:
        seen = states.detach()
        if uniform:
            seen = replace(seen, a=torch.zeros_like(seen.a))
        blocks = self.choose_blocks(batch, self.random)
        return e_step(self.model, batch, seen, z, blocks, printed_q=self.printed_q)
