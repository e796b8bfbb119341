"""How the rows of Table 1 learn.

`learn_all`         reading `vocabulary`: EM-HRNN learns all its parameters from the labels alone. Theta adapts to any
                    segmentation that it is trained on, and then the posterior confirms it. So the first epoch takes
                    pi = 1/2, and dropout keeps theta from memorising the documents. One step, on a batch: E by the
                    method's blocks, given the segmentation that each document had last (block Gibbs); theta by the
                    log-likelihood of a posterior sample; pi by its logistic loss on gamma. With r frozen, both are
                    gradients of Q.
`learn_indicator`   readings `independent` and `state`: theta is the teacher's and known. E reads the likelihood of the
                    method's blocks from the table of all segmentations; M is a Newton step of the indicator.
`learn_detector`    HM-RNN and MHS-RNN learn labels by gradients, and their own detectors say where phrases end.

Each gives its model, the same one, after every epoch or round.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.nn.utils import clip_grad_norm_

from emhrnn.corpus.batch import Batch
from emhrnn.models import segmentation
from emhrnn.models.model import DocumentModel, log_likelihood
from emhrnn.paper.em.blocks import Blocks, covered
from emhrnn.paper.em.likelihood import batch_labels
from emhrnn.paper.em.steps import above, e_step, m_step_pi, weigh
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN
from emhrnn.paper.models.rows import PAPER_NETWORK, HierarchyConfig, HMRNNConfig, NetworkConfig
from emhrnn.paper.simulation.world import CLASSES, World, all_log_p, block_likelihood, of_labels, take
from emhrnn.shapes import Bool, Float, Int64

ChooseBlocks = Callable[[Batch, np.random.Generator], Blocks]
M = TypeVar("M", bound=DocumentModel)


@dataclass(frozen=True)
class Schedule:
    """Of every row that learns by gradients. Of the learning rates, the one under whose model the training labels are
    likeliest is kept."""

    epochs: int = 12
    uniform: int = 1  # epochs of EM with pi = 1/2
    documents: int = 250  # of a batch
    learning_rates: Sequence[float] = (5e-3, 1e-2)  # the highest: each rises from, and falls to, almost nothing
    rising: float = 0.15  # share of the steps
    dropout: float = 0.15
    clip: float = 1.0


def learn_all(
    world: World,
    choose_blocks: ChooseBlocks | None,
    seed: int,
    schedule: Schedule,
    rate: float,
    *,
    printed_q: bool = False,
) -> Iterator[EMHRNN]:
    """A new EM-HRNN that learns from the labels; without blocks to enumerate, from the true z, too."""
    random = np.random.default_rng([seed, 2])
    dropout = torch.Generator().manual_seed(int(random.integers(2**62)))
    table = world.teacher.embedding.table
    assert isinstance(table, Tensor)
    config = PAPER_NETWORK.model_copy(update={"dropout": schedule.dropout})
    model = EMHRNN(config, table=table, classes=CLASSES, generator=dropout, rate=0.5)
    z_of_all = world.z_train if choose_blocks is None else segmentation.random(world.train, 0.5, random)
    z_of_all = z_of_all.reshape(world.train.n_documents, -1).copy()

    def loss(batch: Batch, rows: Int64[np.ndarray, " documents"], epoch: int) -> Float[Tensor, ""]:
        states, last = model.words(batch, dropout), z_of_all[rows].reshape(-1)
        if choose_blocks is None:
            return -log_likelihood(model.encode(batch, states, last, dropout).logits, batch_labels(batch)).mean()
        seen = states.detach()
        if epoch < schedule.uniform:
            seen = replace(seen, a=torch.zeros_like(seen.a))
        posterior = e_step(model, batch, seen, last, choose_blocks(batch, random), printed_q=printed_q)
        z = posterior.segmentation(last, posterior.sample(random))
        z_of_all[rows] = z.reshape(len(rows), -1)
        theta = -log_likelihood(model.encode(batch, states, z, dropout).logits, batch_labels(batch)).mean()
        mask = torch.from_numpy(covered(posterior.blocks, batch.n_words))
        per_document = float(mask.sum()) / batch.n_documents  # Q sums over words, and is averaged over documents
        return theta + per_document * m_step_pi(states.a, posterior.marginals(), mask)

    return _descend(model, world, schedule, rate, random, loss)


Loss = Callable[[Batch, Int64[np.ndarray, " documents"], int], Float[Tensor, ""]]  # documents, their rows, epoch


def _descend(
    model: M, world: World, schedule: Schedule, rate: float, random: np.random.Generator, loss: Loss
) -> Iterator[M]:
    """Adam; the learning rate goes up and down once."""
    n = world.train.n_documents
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    steps = schedule.epochs * -(-n // schedule.documents)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=schedule.rising)
    for epoch in range(schedule.epochs):
        model.set_epoch(epoch)
        order = random.permutation(n)
        for begin in range(0, n, schedule.documents):
            rows = order[begin : begin + schedule.documents]
            value = loss(take(world.train, rows), rows, epoch)
            optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(model.parameters(), schedule.clip)
            optimizer.step()
            pace.step()
        yield model


RIDGE = 1e-3  # on the Hessian of a Newton step: few words leave directions open


@torch.no_grad()
def learn_indicator(
    world: World, choose_blocks: ChooseBlocks, seed: int, rounds: int, *, printed_q: bool = False
) -> Iterator[EMHRNN]:
    """The teacher with an indicator of its own, which sees the training documents and their labels."""
    model, batch = world.teacher, world.train
    random = np.random.default_rng([seed, 1])
    nn.init.normal_(model.indicator.weight, std=0.1, generator=torch.Generator().manual_seed(seed))
    nn.init.zeros_(model.indicator.bias)
    states = model.words(batch)
    table = of_labels(all_log_p(model, batch, states), batch)
    for _ in range(rounds):
        seen = WordStates(states.h1, states.scores, model.indicator(states.h1).squeeze(1))
        z = above(batch, seen.a)
        blocks = choose_blocks(batch, random)
        posterior = weigh(batch, seen, blocks, block_likelihood(table, batch, z, blocks), printed_q=printed_q)
        mask = torch.from_numpy(covered(blocks, batch.n_words))
        newton_indicator(model.indicator, states.h1, posterior.marginals(), mask)
        yield model


@torch.no_grad()
def newton_indicator(
    indicator: nn.Linear,
    h1: Float[Tensor, "words word_features"],
    gamma: Float[Tensor, " words"],
    mask: Bool[Tensor, " words"],
) -> None:
    """A Newton step on the indicator's own parameters (51 in the paper), halved until Q's pi term does not fall."""
    if not mask.any():
        return
    h = h1.detach()[mask].double()
    h = torch.cat([h, h.new_ones(len(h), 1)], dim=1)  # (targets, word_features + 1)
    target = gamma[mask].double()
    w = torch.cat([indicator.weight[0], indicator.bias]).double()
    pi = torch.sigmoid(h @ w)
    hessian = (h * (pi * (1 - pi))[:, None]).t() @ h + RIDGE * torch.eye(len(w), dtype=h.dtype)
    w = _line_search(h, target, w, torch.linalg.solve(hessian, h.t() @ (target - pi)))
    indicator.weight[0] = w[:-1].to(indicator.weight.dtype)
    indicator.bias[0] = w[-1].to(indicator.bias.dtype)


def _line_search(h: Tensor, target: Tensor, w: Tensor, step: Tensor) -> Tensor:
    def loss(w: Tensor) -> Tensor:
        a = h @ w
        return (softplus(a) - target * a).sum()

    before = loss(w)
    for halvings in range(30):
        tried = w + step * 0.5**halvings
        if loss(tried) <= before:
            return tried
    return w


DETECTORS: dict[str, tuple[type[HMRNN | MHSRNN], type[NetworkConfig]]] = {
    "hm-rnn": (HMRNN, HMRNNConfig),
    "mhs-rnn": (MHSRNN, HierarchyConfig),
}


def learn_detector(world: World, method: str, seed: int, schedule: Schedule, rate: float) -> Iterator[HMRNN | MHSRNN]:
    """A new HM-RNN or MHS-RNN that learns the labels."""
    network, settings = DETECTORS[method]
    config = settings(name=method, tune_embedding=False, dropout=schedule.dropout)
    generator = torch.Generator().manual_seed(seed)
    model = network(config, table=world.teacher.embedding.table, classes=CLASSES, generator=generator)  # type: ignore[arg-type]

    def loss(batch: Batch, rows: Int64[np.ndarray, " documents"], epoch: int) -> Float[Tensor, ""]:
        return -log_likelihood(model(batch, generator).logits, batch_labels(batch)).mean()

    return _descend(model, world, schedule, rate, np.random.default_rng([seed, 3]), loss)
