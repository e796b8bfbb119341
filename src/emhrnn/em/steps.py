"""The E-step, the two M-steps of Algorithm 1, and the direct loss that equals one round of them (SPEC 1.4 - 1.6).

    E       r(z_B)  proportional to  p(z_B | w) p(y | z_B, zhat_-B, w),   gamma_t = E_r[z_t]
    theta   raise   sum over z_B of r(z_B) log p_theta(y | z_B, zhat_-B, w)        r frozen
    pi      raise   sum over t of gamma_t log pi_t + (1 - gamma_t) log (1 - pi_t)
    direct  raise   log sum over z_B of p(z_B | w) p(y | z_B, zhat_-B, w)          same gradient (Fisher's identity)

The E-step is pure; the M-steps return losses to be minimised.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks
from emhrnn.em.likelihood import configuration_likelihood
from emhrnn.em.posterior import Posterior
from emhrnn.em.prior import log_prior
from emhrnn.models.em_hrnn import EMHRNN, WordStates

TINY = torch.finfo(torch.float32).tiny  # a batch without any weight has the loss 0


@torch.no_grad()
def e_step(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    *,
    temperature: float = 1.0,
    printed_q: bool = False,
) -> Posterior:
    """The posterior of every block given the label and z outside the block. See `weigh` for the settings."""
    likelihood = configuration_likelihood(model, batch, states, z, blocks)
    return weigh(batch, states, blocks, likelihood, temperature=temperature, printed_q=printed_q)


def weigh(
    batch: Batch,
    states: WordStates,
    blocks: Blocks,
    likelihood: Float[Tensor, "blocks configurations"],
    *,
    temperature: float = 1.0,
    printed_q: bool = False,
) -> Posterior:
    """Bayes' rule. `temperature` T flattens the posterior to r^(1/T). `printed_q` divides by p(y | Z, w) as the paper
    prints it: the likelihood cancels, the label has no say, and gamma = pi (SPEC A1)."""
    prior = log_prior(states.a.detach(), blocks)
    weights = torch.where(torch.isneginf(likelihood), -torch.inf, prior) if printed_q else prior + likelihood
    return Posterior(blocks, batch.sentence_final, prior, likelihood, weights / temperature)


def m_step_theta(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    posterior: Posterior,
    *,
    weights: Float[Tensor, " blocks"] | None = None,
) -> Float[Tensor, ""]:
    """-sum r log p_theta, weighted mean over blocks, on all configurations. For one posterior sample instead of all of
    them, encode the sampled z and take its negative log-likelihood: as cheap as any step and, with one block in each
    document, the same in expectation."""
    likelihood = configuration_likelihood(model, batch, states, z, posterior.blocks)
    exists = ~torch.isneginf(posterior.log_likelihood)
    q = posterior.responsibilities * torch.where(exists, likelihood, 0)  # (blocks, configurations)
    if weights is None:
        return -q.sum() / len(posterior.blocks)
    return -(weights[:, None] * q).sum() / weights.sum().clamp_min(TINY)


def m_step_pi(
    a: Float[Tensor, " words"],
    gamma: Float[Tensor, " words"],
    mask: Bool[Tensor, " words"],
    *,
    weights: Float[Tensor, " words"] | None = None,
) -> Float[Tensor, ""]:
    """Soft-target logistic loss, mean over the words of the mask: gradient (pi - gamma) for each logit a.

    Words in no block have no target and no gradient. To weigh it as Q does, multiply by words of the mask per
    document."""
    a, gamma = a[mask], gamma[mask]
    loss = softplus(a) - gamma * a
    if weights is None:
        return loss.sum() / max(len(a), 1)
    return (weights[mask] * loss).sum() / weights[mask].sum().clamp_min(TINY)


def marginal_loss(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
) -> Float[Tensor, ""]:
    """-log p(y | zhat_-B, w), mean over blocks: autograd supplies the responsibilities."""
    likelihood = configuration_likelihood(model, batch, states, z, blocks)
    return -torch.logsumexp(log_prior(states.a, blocks) + likelihood, dim=1).sum() / len(blocks)
