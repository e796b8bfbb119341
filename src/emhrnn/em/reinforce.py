"""Leave-one-out REINFORCE as an E-step (SPEC E7).

    raise E_{Z ~ pi} log p(y | Z, w)      gradient = mean_k A_k grad log p(Z^k | w)
    A_k = R_k - mean of the other R_j,    R_k = log p(y | Z^k, w)

Since grad log p(Z^k) with respect to the logit a_t is z^k_t - pi_t, that gradient is the one of the soft-target loss
with target gamma_t = pi_t + mean_k A_k (z^k_t - pi_t), so it fits the M-step of every other E-step. The target may
leave [0, 1]; the loss allows it.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em.samples import per_word


def reinforce_gamma(
    batch: Batch,
    pi: Float[Tensor, " words"],
    z: Bool[np.ndarray, "samples words"],
    likelihood: Float[Tensor, "samples documents"],
) -> Float[Tensor, " words"]:
    return pi + (per_word(batch, advantages(likelihood)) * (torch.from_numpy(z).to(pi.dtype) - pi)).mean(0)


def advantages(reward: Float[Tensor, "samples documents"]) -> Float[Tensor, "samples documents"]:
    """Each sample's reward above the mean of the others."""
    samples = len(reward)
    return (reward - reward.mean(0)) * (samples / (samples - 1))
