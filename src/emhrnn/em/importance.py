"""Importance-weighted E-step: K whole-document samples of the prior, weighted by the likelihood (SPEC E6).

    Z^k ~ p(Z | w)      w_k = softmax_k log p(y | Z^k, w)      gamma_t = sum_k w_k z^k_t

For the posterior of temperature T both factors are raised to 1/T: the samples are of p(Z | w)^(1/T), independent
boundaries with logits a / T, and the weights softmax_k of log p(y | Z^k, w) / T.

K passes move the whole document at once, where blocks need 2^length passes for a few words. The samples' own noise is
taken out: without the label the weights would be 1 / K and the mean of z^k is pi, so

    gamma_t = pi_t + sum_k (w_k - 1 / K) z^k_t

has the same expectation and a variance that vanishes where the label says nothing. It may leave [0, 1] a little.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em.samples import per_word, pick


def importance_gamma(
    batch: Batch,
    pi: Float[Tensor, " words"],
    z: Bool[np.ndarray, "samples words"],
    likelihood: Float[Tensor, "samples documents"],
) -> Float[Tensor, " words"]:
    weights = torch.softmax(likelihood, dim=0) - 1 / len(likelihood)
    return pi + (per_word(batch, weights) * torch.from_numpy(z)).sum(0)


def resample(
    batch: Batch,
    z: Bool[np.ndarray, "samples words"],
    likelihood: Float[Tensor, "samples documents"],
    generator: np.random.Generator,
) -> Bool[np.ndarray, " words"]:
    """One sample per document, drawn by weight: nearly a draw from the posterior."""
    cumulative = torch.softmax(likelihood.double(), dim=0).cumsum(0).numpy()
    threshold = generator.random(batch.n_documents) * cumulative[-1]
    return pick(batch, z, (cumulative <= threshold).sum(axis=0))


def log_evidence(
    likelihood: Float[Tensor, "samples documents"], log_ratio: Float[Tensor, "samples documents"] | None = None
) -> Float[Tensor, " documents"]:
    """log of the mean likelihood: an estimate of log p(y | w), from below on average. Where the samples are not of the
    prior, `log_ratio` is log of prior / what they are of, up to a constant."""
    if log_ratio is None:
        return torch.logsumexp(likelihood, dim=0) - float(np.log(len(likelihood)))
    return torch.logsumexp(likelihood + log_ratio, dim=0) - torch.logsumexp(log_ratio, dim=0)


def log_prior_ratio(
    batch: Batch, a: Float[Tensor, " words"], z: Bool[np.ndarray, "samples words"], temperature: float
) -> Float[Tensor, "samples documents"]:
    """log p(Z^k | w) / p(Z^k | w)^(1/T), up to a constant: log p(Z | w) is the sum of a_t z_t, and one."""
    terms = torch.from_numpy(z) * a * (1 - 1 / temperature)  # (samples, words)
    sums: Tensor = torch.segment_reduce(terms.t().contiguous(), "sum", offsets=torch.from_numpy(batch.word_offsets))
    return sums.t()
