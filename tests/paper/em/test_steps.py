"""E-steps, M-steps and the posterior over blocks, against brute force and their laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import binary_cross_entropy_with_logits

from emhrnn.corpus.batch import Batch
from emhrnn.models.settings import EMConfig
from emhrnn.paper.em.blocks import covered, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.steps import STRATEGIES, above, e_step, m_step_pi, m_step_theta, rate_shift, rate_threshold
from tests.oracles import brute_force
from tests.paper.em.examples import make_batch, marginal_loss, random_z, seeds, shapes, small_model


def gradient(model, loss):
    model.zero_grad()
    loss.backward()
    return torch.cat([p.grad.to_dense().flatten() for p in model.parameters() if p.grad is not None])


@given(shapes(3, 3, 3), seeds)
@settings(max_examples=10, deadline=None)
def test_fisher_identity(lengths, seed):
    """The gradient of the marginal log-likelihood is that of Q with frozen responsibilities."""
    model, batch = small_model(seed, votes=10), make_batch(lengths, seed)
    z, blocks = random_z(batch, seed), exact_blocks(batch)
    direct = gradient(model, marginal_loss(model, batch, model.words(batch), z, blocks))

    states = model.words(batch)
    posterior = e_step(model, batch, states, z, blocks)
    mask = torch.from_numpy(~batch.sentence_final)
    per_document = int(mask.sum()) / batch.n_documents  # Q sums over words
    theta = m_step_theta(model, batch, states, z, posterior)
    pi = m_step_pi(states.a, posterior.marginals(), mask) * per_document
    torch.testing.assert_close(gradient(model, theta + pi), direct, rtol=1e-9, atol=1e-10)


def test_fisher_identity_holds_per_block():
    model, batch = small_model(votes=10), make_batch([[4, 3], [6]])
    z, blocks = random_z(batch), window_blocks(batch, 3)
    direct = gradient(model, marginal_loss(model, batch, model.words(batch), z, blocks))
    states = model.words(batch)
    posterior = e_step(model, batch, states, z, blocks)
    mask = torch.from_numpy(covered(blocks, batch.n_words))
    theta = m_step_theta(model, batch, states, z, posterior)
    pi = m_step_pi(states.a, posterior.marginals(), mask) * int(mask.sum()) / len(blocks)
    torch.testing.assert_close(gradient(model, theta + pi), direct, rtol=1e-9, atol=1e-10)


def test_pi_loss_is_the_soft_target_logistic_loss():
    a = torch.randn(20, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    gamma = torch.linspace(0, 1, 20, dtype=torch.float64)
    mask = torch.arange(20) % 3 > 0
    nan_outside = torch.where(mask, gamma, torch.nan)
    loss = m_step_pi(a, nan_outside, mask)
    torch.testing.assert_close(loss, binary_cross_entropy_with_logits(a[mask], gamma[mask]))
    (slope,) = torch.autograd.grad(loss, a)
    torch.testing.assert_close(slope[mask], (torch.sigmoid(a) - gamma)[mask] / mask.sum())
    assert (slope[~mask] == 0).all()


def test_pi_loss_without_targets_is_zero():
    a = torch.ones(2, requires_grad=True)
    assert m_step_pi(a, torch.full((2,), torch.nan), torch.zeros(2, dtype=torch.bool)).item() == 0


SETTINGS = EMConfig(blocks=4, block_length=3, focus=False)


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
        STRATEGIES["blocks"](
            model, batch, states, z, EMConfig(estep="blocks", block_length=3, windows=n), np.random.default_rng(0)
        )
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
    chosen = EMConfig(blocks=5, block_length=1, focus=True)
    result = STRATEGIES["local"](model, batch, focused, random_z(batch), chosen, np.random.default_rng(0))
    assert set(np.flatnonzero(result.mask)) <= set(range(30, 40))
    assert result.mask.sum() == 5


def test_documents_of_weight_0_are_not_there() -> None:
    batch = make_batch([[3, 4], [5, 2], [6]])
    a = torch.randn(batch.n_words, generator=torch.Generator().manual_seed(0))
    weighted = replace(batch, weights=np.array([1, 0, 2], dtype=np.float32))
    left, of_left = make_batch([[3, 4], [6]]), torch.cat([a[:7], a[14:]])
    assert rate_threshold(weighted, a, 0.5) == rate_threshold(left, of_left, 0.5) != rate_threshold(batch, a, 0.5)
    assert rate_shift(weighted, a, 0.5) == rate_shift(left, of_left, 0.5) != rate_shift(batch, a, 0.5)


def test_the_papers_rule_can_lose_every_boundary_and_the_rate_cannot():
    batch = make_batch([[50, 40], [60]])
    a = torch.randn(150, generator=torch.Generator().manual_seed(0)) - 5  # no pi over one half
    assert (above(batch, a) == batch.sentence_final).all()
    threshold = rate_threshold(batch, a, 0.23)
    assert threshold is not None
    kept = above(batch, a, threshold)
    assert kept.mean() == pytest.approx(0.23, abs=0.01)
    assert kept[batch.sentence_final].all()


@given(shapes(), seeds)
@settings(max_examples=20, deadline=None)
def test_any_rate_can_be_asked_for(lengths, seed):
    batch = make_batch(lengths, seed)
    a = torch.from_numpy(np.random.default_rng(seed).normal(size=batch.n_words))
    for rate in (0.0, 0.3, 0.5, 0.8, 1.0):
        threshold = rate_threshold(batch, a, rate)
        assert (threshold is None) == batch.sentence_final.all()
        if threshold is not None:
            z = above(batch, a, threshold)
            assert z[batch.sentence_final].all()
            assert abs(z.sum() - max(rate * batch.n_words, batch.n_sentences)) <= 1


def test_sentences_of_one_word_say_nothing_about_the_threshold():
    assert rate_threshold(make_batch([[1, 1], [1]]), torch.full((3,), -1.2), 0.23) is None


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_shift_makes_the_mean_of_pi_the_rate(rate: float) -> None:
    rng = np.random.default_rng(3)
    batch = Batch.from_lists([[rng.integers(0, 9, 30).tolist() for _ in range(20)]])
    a = torch.from_numpy(rng.normal(1.5, 2.0, batch.n_words))
    shift = rate_shift(batch, a, rate)
    pi = torch.sigmoid(a - shift).numpy()
    pi[batch.sentence_final] = 1
    assert pi.mean() == pytest.approx(rate, abs=1e-5)


def test_no_shift_where_sentence_ends_alone_are_too_many() -> None:
    batch = Batch.from_lists([[[1, 2], [3, 4]]])
    assert rate_shift(batch, torch.zeros(4), 0.23) == 0


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
