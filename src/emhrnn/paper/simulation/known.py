"""Readings `independent` and `state`: theta is the teacher's and known; only the indicator is learned, by EM (A10 i).

E    blocks of the method, their likelihood read from the table of all segmentations
M    the indicator, by a Newton step on all documents
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from emhrnn.em.blocks import covered
from emhrnn.em.imputation import above
from emhrnn.em.steps import weigh
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.paper.simulation.enumeration import all_log_p, block_likelihood, of_labels
from emhrnn.paper.simulation.generator import World
from emhrnn.paper.simulation.joint import ChooseBlocks

RIDGE = 1e-3  # on the Hessian of a Newton step: few words leave directions open


@torch.no_grad()
def learn_indicator(
    world: World,
    choose_blocks: ChooseBlocks,
    seed: int,
    rounds: int,
    *,
    printed_q: bool = False,
    watch: Callable[[int, EMHRNN], None] = lambda *_: None,
) -> EMHRNN:
    """The teacher with an indicator of its own, which has seen the training documents and their labels."""
    model, batch = world.teacher, world.train
    random = np.random.default_rng([seed, 1])
    nn.init.normal_(model.indicator.weight, std=0.1, generator=torch.Generator().manual_seed(seed))
    nn.init.zeros_(model.indicator.bias)
    states = model.words(batch)
    table = of_labels(all_log_p(model, batch, states), batch)
    for round_ in range(rounds):
        seen = WordStates(states.h1, states.scores, model.indicator(states.h1).squeeze(1))
        z = above(batch, seen.a)
        blocks = choose_blocks(batch, random)
        posterior = weigh(batch, seen, blocks, block_likelihood(table, batch, z, blocks), printed_q=printed_q)
        mask = torch.from_numpy(covered(blocks, batch.n_words))
        newton_indicator(model.indicator, states.h1, posterior.marginals(), mask)
        watch(round_, model)
    return model


@torch.no_grad()
def newton_indicator(
    indicator: nn.Linear,
    h1: Float[Tensor, "words word_features"],
    gamma: Float[Tensor, " words"],
    mask: Bool[Tensor, " words"],
    *,
    steps: int = 1,
) -> None:
    """Newton steps on the indicator's own parameters (51 in the paper), each halved until Q's pi term does not fall."""
    if not mask.any():
        return
    h = h1.detach()[mask].double()
    h = torch.cat([h, h.new_ones(len(h), 1)], dim=1)  # (targets, word_features + 1)
    target = gamma[mask].double()
    w = torch.cat([indicator.weight[0], indicator.bias]).double()
    for _ in range(steps):
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
