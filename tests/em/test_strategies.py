"""Every E-step by its name: the same contract, and agreement with the exact posterior where theory says so."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.em.steps import STRATEGIES, EMSettings
from tests.em.examples import make_batch, random_z, seeds, shapes, small_model

SETTINGS = EMSettings(blocks=4, block_length=3)


@pytest.mark.parametrize("name", STRATEGIES)
@given(shapes(3, 3, 4), seeds)
@settings(max_examples=4, deadline=None)
def test_all_keep_the_contract(name, lengths, seed):
    model, batch = small_model(seed, votes=10), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    before = [p.clone() for p in model.parameters()]
    result = STRATEGIES[name](model, batch, states, z, SETTINGS, np.random.default_rng(seed))
    again = STRATEGIES[name](model, batch, states, z, SETTINGS, np.random.default_rng(seed))
    assert result.z_sample[batch.sentence_final].all()
    assert not result.mask[batch.sentence_final].any()
    assert torch.isfinite(result.gamma[result.mask]).all()
    assert torch.isfinite(result.log_evidence).all()
    assert not result.gamma.requires_grad
    assert (result.z_sample == again.z_sample).all()
    torch.testing.assert_close(result.gamma, again.gamma, equal_nan=True)
    assert all((p == q).all() and p.grad is None for p, q in zip(model.parameters(), before, strict=True))
    assert ((result.gamma[result.mask] >= 0) & (result.gamma[result.mask] <= 1)).all()


def test_blocks_looks_at_all_windows_or_at_some():
    """What it says of a window does not depend on which others were drawn."""
    model, batch = small_model(), make_batch([[9, 5], [12]])
    states, z = model.words(batch), random_z(batch)
    every, some = (
        STRATEGIES["blocks"](model, batch, states, z, replace(SETTINGS, windows=n), np.random.default_rng(0))
        for n in (0, 2)
    )
    assert every.mask.sum() == (~batch.sentence_final).sum()
    assert 0 < some.mask.sum() <= 2 * 2 * SETTINGS.block_length
    torch.testing.assert_close(some.gamma[some.mask], every.gamma[some.mask])


def test_focus_spends_the_blocks_where_pi_is_undecided():
    model, batch = small_model(), make_batch([[60, 60]])
    states = model.words(batch)
    a = torch.full_like(states.a, -12.0)
    a[30:40] = 0
    focused = replace(states, a=a)
    chosen = EMSettings(blocks=5, block_length=1, focus=True)
    result = STRATEGIES["local"](model, batch, focused, random_z(batch), chosen, np.random.default_rng(0))
    assert set(np.flatnonzero(result.mask)) <= set(range(30, 40))
    assert result.mask.sum() == 5


@pytest.mark.parametrize("name", ["exact", "blocks"])
def test_the_evidence_is_that_of_the_model_at_any_temperature(name):
    model, batch = small_model(votes=20.0), make_batch([[3, 2], [4]])
    states, z = model.words(batch), random_z(batch)
    plain, hot = (
        STRATEGIES[name](model, batch, states, z, replace(SETTINGS, temperature=T), np.random.default_rng(0))
        for T in (1.0, 8.0)
    )
    torch.testing.assert_close(hot.log_evidence, plain.log_evidence)
