"""Every E-step by its name: the same contract, and agreement with the exact posterior where theory says so."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.em.blocks import window_blocks
from emhrnn.em.first_order import first_order_likelihood
from emhrnn.em.importance import importance_gamma
from emhrnn.em.likelihood import configuration_likelihood
from emhrnn.em.reinforce import advantages, reinforce_gamma
from emhrnn.em.samples import draw, sample_likelihood
from emhrnn.em.steps import m_step_pi
from emhrnn.em.strategies import STRATEGIES, EMSettings
from tests.em.examples import make_batch, random_z, seeds, shapes, small_model
from tests.oracles import em_hrnn
from tests.oracles.recurrent import step, zero_state

SETTINGS = EMSettings(blocks=4, block_length=3, samples=6)


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
    if name not in ("importance", "reinforce"):  # those give unbiased targets that may leave [0, 1]
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


# ------------------------------------------------------------------ first order


def test_first_order_is_exact_at_z_and_when_the_change_is_small():
    model, batch = small_model(scale=1.0, votes=1.0), make_batch([[5, 4, 1], [3]])
    states, z = model.words(batch), random_z(batch)
    blocks = window_blocks(batch, 4)
    exact = configuration_likelihood(model, batch, states, z, blocks)
    first = first_order_likelihood(model, batch, states, z, blocks)
    assert (torch.isneginf(exact) == torch.isneginf(first)).all()
    there = ~torch.isneginf(exact)
    assert (exact - first)[there].abs().max() < 0.03 * (exact[there].max() - exact[there].min())


@given(shapes(3, 3, 6), seeds)
@settings(max_examples=8, deadline=None)
def test_first_order_is_what_it_says(lengths, seed):
    model, batch = small_model(seed), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    blocks = window_blocks(batch, 3)
    first = first_order_likelihood(model, batch, states, z, blocks).numpy()
    for k in range(len(blocks)):
        d = blocks.documents[k]
        positions = blocks.positions[k][blocks.positions[k] >= 0]
        log_p, slopes = upper_slopes(model, batch, z, d)
        for c in range(1 << len(positions)):
            changed = z.copy()
            changed[positions] = [c >> j & 1 for j in range(len(positions))]
            sentences = (em_hrnn.nested(batch, array, d) for array in (batch.words, z, changed))
            gains = [gain_by_definition(model, g, *each) for g, *each in zip(slopes, *sentences, strict=True)]
            assert first[k, c] == pytest.approx(log_p + sum(gains), abs=1e-6)


def upper_slopes(model, batch, z, d):
    """log p(y | z), and its gradient in each sentence vector."""
    s = []
    with torch.no_grad():
        for words, z_sentence in zip(em_hrnn.nested(batch, batch.words, d), em_hrnn.nested(batch, z, d), strict=True):
            s.append(em_hrnn.sentence_vector(model, phrase_inputs(model, words, z_sentence)))
    s = [vector.requires_grad_() for vector in s]
    forward = em_hrnn.recurrence(model.sentence_forward, s)
    backward = em_hrnn.recurrence(model.sentence_backward, s[::-1])[::-1]
    h3 = [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
    said = em_hrnn.said(model, em_hrnn.nested(batch, batch.words, d))
    logits = model.output(em_hrnn.pool(model.sentence_attention, h3)) + said
    log_p = torch.log_softmax(logits, 0)[batch.labels[d]]
    return log_p.item(), torch.autograd.grad(log_p, s)


@torch.no_grad()
def gain_by_definition(model, g, words, z, changed):
    """< g, s(Z') - s(Z) >: exact up to the join, the tail by a finite difference."""
    flipped = [t for t in range(len(words)) if z[t] != changed[t]]
    if not flipped:
        return 0.0
    join, new_join = (sum(array[: flipped[-1] + 1]) for array in (z, changed))  # the phrase that ends at the join
    q, new_q = phrase_inputs(model, words, z), phrase_inputs(model, words, changed)[: new_join + 1]
    old, new = run(model, q), run(model, new_q)

    def total(states, q):
        """Of attention before it is normalised: sum of weight times < g, p >, and sum of weights."""
        attention = model.phrase_attention
        p = [em_hrnn.phrase_features(model, h, x) for (h, *_), x in zip(states, q, strict=True)]
        weights = [(torch.tanh(attention.weight @ row + attention.bias) @ attention.context).exp() for row in p]
        return sum(w * (g @ row) for w, row in zip(weights, p, strict=True)), sum(weights)

    def tail(share):
        state = [x + share * (y - x) for x, y in zip(old[join], new[-1], strict=True)]
        return total(run(model, q[join + 1 :], state), q[join + 1 :])

    before = torch.div(*total(old, q))
    (ahead, ahead_weight), (behind, behind_weight) = tail(1e-5), tail(-1e-5)
    slope = (ahead - behind - before * (ahead_weight - behind_weight)) / 2e-5
    (path, path_weight), (rest, rest_weight) = total(new, new_q), tail(0)
    return ((path + rest + slope) / (path_weight + rest_weight) - before).item()


@torch.no_grad()
def phrase_inputs(model, words, z):
    return [em_hrnn.pool(model.word_attention, p) for p in em_hrnn.phrase_states(model, words, z)]


def run(model, q, state=None):
    """The state behind each phrase."""
    state, states = state or zero_state(model.phrase_layer), []
    for x in q:
        state = step(model.phrase_layer, x, *state)
        states.append(state)
    return states


# ------------------------------------------------------------------ samples


def test_sample_likelihood_is_that_of_plain_passes():
    model, batch = small_model(), make_batch([[3, 4], [2], [5, 1]])
    states = model.words(batch)
    z = draw(batch, states.a, 3, np.random.default_rng(0))
    fast = sample_likelihood(model, batch, states, z)
    with torch.no_grad():
        slow = [[em_hrnn.log_p(model, batch, one, d).item() for d in range(3)] for one in z]
    np.testing.assert_allclose(fast.numpy(), slow, atol=1e-10)


def test_many_importance_samples_reach_the_exact_posterior():
    model, batch = small_model(votes=20.0), make_batch([[3, 2], [4]])
    states, z = model.words(batch), random_z(batch)
    exact = STRATEGIES["exact"](model, batch, states, z, SETTINGS, np.random.default_rng(0))
    many = EMSettings(samples=3000)
    sampled = STRATEGIES["importance"](model, batch, states, z, many, np.random.default_rng(0))
    torch.testing.assert_close(sampled.gamma[exact.mask], exact.gamma[exact.mask], rtol=0, atol=0.03)
    torch.testing.assert_close(sampled.log_evidence, exact.log_evidence, rtol=0, atol=0.05)


def test_importance_samples_are_tempered_as_the_exact_posterior_is():
    model, batch = small_model(votes=20.0), make_batch([[3, 2], [4]])
    states, z = model.words(batch), random_z(batch)
    exact, many = (
        STRATEGIES[name](model, batch, states, z, EMSettings(samples=5000, temperature=4.0), np.random.default_rng(0))
        for name in ("exact", "importance")
    )
    torch.testing.assert_close(many.gamma[exact.mask], exact.gamma[exact.mask], rtol=0, atol=0.03)
    torch.testing.assert_close(many.log_evidence, exact.log_evidence, rtol=0, atol=0.15)
    few = EMSettings(samples=60, temperature=4.0)
    generator = np.random.default_rng(0)
    drawn = [STRATEGIES["importance"](model, batch, states, z, few, generator).z_sample for _ in range(1500)]
    np.testing.assert_allclose(np.mean(drawn, axis=0)[exact.mask], exact.gamma[exact.mask], atol=0.05)


def test_without_information_the_targets_are_the_prior():
    batch = make_batch([[4, 3]])
    a = torch.zeros(7)
    z = draw(batch, a, 5, np.random.default_rng(0))
    same = torch.full((5, 1), -1.3)
    pi = torch.sigmoid(a)
    torch.testing.assert_close(importance_gamma(batch, pi, z, same), pi)
    torch.testing.assert_close(reinforce_gamma(batch, pi, z, same), pi)


def test_reinforce_target_gives_the_score_function_gradient():
    model, batch = small_model(), make_batch([[4, 3], [5]])
    states = model.words(batch)
    z = draw(batch, states.a, 4, np.random.default_rng(1))
    reward = sample_likelihood(model, batch, states, z)
    free = torch.from_numpy(~batch.sentence_final)
    a = states.a.detach().requires_grad_()
    target = reinforce_gamma(batch, torch.sigmoid(a.detach()), z, reward)
    (by_target,) = torch.autograd.grad(m_step_pi(a, target, free) * free.sum(), a)
    log_p = torch.distributions.Bernoulli(logits=a).log_prob(torch.from_numpy(z).double()) * free  # (samples, words)
    document = torch.from_numpy(batch.document_of_sentence[batch.sentence_of_word])
    (by_score,) = torch.autograd.grad(-(advantages(reward)[:, document] * log_p).mean(0).sum(), a)
    torch.testing.assert_close(by_target, by_score)


def test_advantages_leave_one_out():
    reward = torch.tensor([[1.0], [2.0], [6.0]])
    torch.testing.assert_close(advantages(reward), torch.tensor([[1 - 4.0], [2 - 3.5], [6 - 1.5]]))


# ------------------------------------------------------------------ evidence


@pytest.mark.parametrize("name", ["exact", "blocks"])
def test_the_evidence_is_that_of_the_model_at_any_temperature(name):
    model, batch = small_model(votes=20.0), make_batch([[3, 2], [4]])
    states, z = model.words(batch), random_z(batch)
    plain, hot = (
        STRATEGIES[name](model, batch, states, z, replace(SETTINGS, temperature=T), np.random.default_rng(0))
        for T in (1.0, 8.0)
    )
    torch.testing.assert_close(hot.log_evidence, plain.log_evidence)
