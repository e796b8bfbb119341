"""Readings `independent` and `state`: theta is the teacher's and known; only the indicator is learned, by EM (A10 i).

E    blocks of the method, their likelihood read from the table of all segmentations
M    the indicator, by a Newton step on all documents
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from emhrnn.em.blocks import covered
from emhrnn.em.imputation import above
from emhrnn.em.steps import newton_indicator, weigh
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.paper.simulation.enumeration import all_log_p, block_likelihood, of_labels
from emhrnn.paper.simulation.generator import World
from emhrnn.paper.simulation.joint import ChooseBlocks


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
