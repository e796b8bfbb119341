"""M-steps and the direct loss (SPEC section 8: 2 and 3)."""

import torch
from hypothesis import given, settings
from torch.nn.functional import binary_cross_entropy_with_logits

from emhrnn.em.blocks import covered, exact_blocks, window_blocks
from emhrnn.em.steps import e_step, m_step_pi, m_step_theta, marginal_loss
from tests.em.examples import make_batch, random_z, seeds, shapes, small_model


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
