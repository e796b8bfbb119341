"""The Newton step of the indicator: EM with it never lowers the likelihood, and it reaches the optimum."""

import numpy as np
import torch
from hypothesis import given, settings

from emhrnn.paper.em.blocks import exact_blocks
from emhrnn.paper.em.steps import e_step
from emhrnn.paper.simulation.learners import newton_indicator
from tests.paper.em.examples import make_batch, random_z, seeds, small_model


@given(seeds)
@settings(max_examples=3, deadline=None)
def test_exact_em_with_newton_steps_never_lowers_the_likelihood(seed):
    model, batch = small_model(seed, votes=20), make_batch([[4, 3], [5], [1, 3], [2, 2]], seed)
    z, mask = random_z(batch, seed), torch.from_numpy(~batch.sentence_final)
    evidence = []
    for _ in range(8):
        states = model.words(batch)
        posterior = e_step(model, batch, states, z, exact_blocks(batch))
        evidence.append(posterior.evidence.sum().item())
        newton_indicator(model.indicator, states.h1, posterior.marginals(), mask)
    assert (np.diff(evidence) >= -1e-9).all()
    assert evidence[-1] > evidence[0]


def test_newton_reaches_the_fixed_point():
    model = small_model()
    h1 = torch.randn(200, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gamma = torch.sigmoid(h1 @ torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64) + 0.3)
    mask = torch.ones(200, dtype=torch.bool)
    for _ in range(20):
        newton_indicator(model.indicator, h1, gamma, mask)
    torch.testing.assert_close(torch.sigmoid(model.indicator(h1).squeeze(1)), gamma, rtol=0, atol=1e-4)


def test_newton_without_targets_changes_nothing():
    model = small_model()
    before = model.indicator.weight.clone()
    newton_indicator(model.indicator, torch.zeros(3, 4), torch.zeros(3), torch.zeros(3, dtype=torch.bool))
    assert (model.indicator.weight == before).all()
