"""The posterior against exhaustive enumeration (docs/paper.md 8: 1, 4, 5, 6, 8)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.paper.em.blocks import covered, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.steps import e_step
from tests.oracles import brute_force
from tests.paper.em.examples import make_batch, random_z, seeds, shapes, small_model

VOTES = 40.0  # strong enough for posteriors to be far from the prior


@given(shapes(3, 3, 3), seeds)
@settings(max_examples=10, deadline=None)
def test_exact_posterior_equals_brute_force(lengths, seed):
    model, batch = small_model(seed, votes=VOTES), make_batch(lengths, seed)
    z = random_z(batch, seed)
    posterior = e_step(model, batch, model.words(batch), z, exact_blocks(batch))
    gamma = posterior.marginals()
    for d in range(batch.n_documents):
        free = brute_force.free_positions(batch, d)
        with torch.no_grad():
            r, evidence = brute_force.posterior(brute_force.log_joint(model, batch, z, free, d))
        assert posterior.evidence[d].item() == pytest.approx(evidence, abs=1e-10)
        assert posterior.responsibilities[d, : len(r)].tolist() == pytest.approx(list(r.values()), abs=1e-10)
        expected = [sum(p for bits, p in r.items() if bits[j]) for j in range(len(free))]
        assert gamma[free].tolist() == pytest.approx(expected, abs=1e-10)


@given(shapes(), seeds, st.integers(1, 5))
@settings(max_examples=15, deadline=None)
def test_responsibilities_sum_to_one_and_gamma_is_a_probability(lengths, seed, length):
    model, batch = small_model(seed, votes=VOTES), make_batch(lengths, seed)
    blocks = local_blocks(batch, 3, length, generator=np.random.default_rng(seed))
    posterior = e_step(model, batch, model.words(batch), random_z(batch, seed), blocks)
    ones = torch.ones(len(blocks), dtype=torch.float64)
    torch.testing.assert_close(posterior.responsibilities.sum(1), ones)
    gamma = posterior.marginals().numpy()
    mask = covered(blocks, batch.n_words)
    assert ((gamma[mask] >= 0) & (gamma[mask] <= 1)).all()
    assert (gamma[batch.sentence_final] == 1).all()
    assert np.isnan(gamma[~mask & ~batch.sentence_final]).all()


@given(shapes(3, 3, 4), seeds)
@settings(max_examples=10, deadline=None)
def test_one_window_over_the_document_is_exact(lengths, seed):
    model, batch = small_model(seed, votes=VOTES), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    window = e_step(model, batch, states, z, window_blocks(batch, int(batch.document_lengths.max())))
    exact = e_step(model, batch, states, random_z(batch, seed + 1), exact_blocks(batch))  # z outside does not matter
    torch.testing.assert_close(window.marginals(), exact.marginals(), rtol=0, atol=1e-12)
    torch.testing.assert_close(window.evidence, exact.evidence, rtol=0, atol=1e-12)


def test_printed_q_returns_the_prior():
    """The paper's denominator p(y | Z, w) cancels the likelihood: the label has no say (docs/paper.md A1)."""
    model, batch = small_model(votes=VOTES), make_batch([[5, 4], [3], [1, 2]])
    states, z = model.words(batch), random_z(batch)
    free = torch.from_numpy(~batch.sentence_final)
    printed = e_step(model, batch, states, z, window_blocks(batch, 3), printed_q=True)
    torch.testing.assert_close(printed.marginals()[free], torch.sigmoid(states.a.detach())[free])
    corrected = e_step(model, batch, states, z, window_blocks(batch, 3))
    assert (corrected.marginals() - printed.marginals())[free].abs().max() > 0.01


def test_overlapping_blocks_are_averaged():
    model, batch = small_model(votes=VOTES), make_batch([[6]])
    blocks = local_blocks(batch, 6, 3, generator=np.random.default_rng(0))
    posterior = e_step(model, batch, model.words(batch), random_z(batch), blocks)
    at_two = [posterior.slot_marginals[k, j].item() for k, j in np.argwhere(blocks.positions == 2)]
    assert len(at_two) == 3
    assert posterior.marginals()[2].item() == pytest.approx(np.mean(at_two))


def test_samples_follow_the_responsibilities():
    model, batch = small_model(votes=VOTES), make_batch([[3, 2], [1], [4]])
    z = random_z(batch)
    posterior = e_step(model, batch, model.words(batch), z, exact_blocks(batch))
    generator = np.random.default_rng(0)
    draws = np.stack([posterior.sample(generator) for _ in range(4000)])
    for d in range(3):
        shares = np.bincount(draws[:, d], minlength=8) / len(draws)
        np.testing.assert_allclose(shares, posterior.responsibilities[d].numpy(), atol=0.03)
    segmentation = posterior.segmentation(z, draws[0])
    assert segmentation[batch.sentence_final].all()
    assert segmentation[[0, 1, 3]].tolist() == [draws[0, 0] >> j & 1 for j in range(3)]
