"""The E-steps by name. All are called alike and give the same thing, so the training loop need not know which it has:

    result = STRATEGIES[name](model, batch, states, z, settings, generator)

    exact         all 2^free configurations of the document; up to 20 free positions
    blocks        windows of `block_length` words that cover the document, or `windows` of them, drawn anew each time
    local         `blocks` windows around random centres (the paper's EM-HRNN-local)
    first-order   as local, but from one backward pass
    importance    `samples` whole-document samples of the prior, weighted by the likelihood
    reinforce     `samples` samples, leave-one-out REINFORCE

`z` holds the boundaries outside the blocks (see imputation), `states` the word layer's output, with or without
gradients: no E-step makes any.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em import importance, reinforce
from emhrnn.em.blocks import EXACT_LIMIT, Blocks, covered, draw_blocks, exact_blocks, local_blocks, window_blocks
from emhrnn.em.first_order import first_order_likelihood
from emhrnn.em.likelihood import configuration_likelihood
from emhrnn.em.posterior import Posterior
from emhrnn.em.samples import draw, pick, sample_likelihood
from emhrnn.em.steps import weigh
from emhrnn.models.em_hrnn import EMHRNN, WordStates


@dataclass(frozen=True)
class EMSettings:
    blocks: int = 10  # local, first-order: blocks per document
    block_length: int = 5  # blocks, local, first-order: words per block
    windows: int = 0  # blocks: of the document's windows, so many; 0: all
    focus: bool = False  # local, first-order: centres in proportion to pi (1 - pi)
    samples: int = 8  # importance, reinforce
    temperature: float = 1.0  # r^(1 / T); reinforce has no r
    printed_q: bool = False  # block E-steps: the paper's misprinted denominator
    exact_limit: int = EXACT_LIMIT  # exact: most free positions


@dataclass(frozen=True, eq=False)
class EStep:
    """What an E-step says about a batch."""

    gamma: Float[Tensor, " words"]  # target for pi; anything where the mask is false
    mask: Bool[Tensor, " words"]  # the words that have a target: free, and reached by this E-step
    z_sample: Bool[np.ndarray, " words"]  # a segmentation drawn from the posterior: theta's M-step encodes it
    log_evidence: Float[
        Tensor, " documents"
    ]  # estimate of log p(y | w); block E-steps: given z outside, mean of blocks
    posterior: Posterior | None = None  # block E-steps; theta's M-step on all configurations needs it


Strategy = Callable[[EMHRNN, Batch, WordStates, Bool[np.ndarray, " words"], EMSettings, np.random.Generator], EStep]
Z = Bool[np.ndarray, " words"]


def exact(
    model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMSettings, generator: np.random.Generator
) -> EStep:
    return _by_blocks(model, batch, states, z, settings, generator, exact_blocks(batch, settings.exact_limit))


def blocks(
    model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMSettings, generator: np.random.Generator
) -> EStep:
    windows = window_blocks(batch, settings.block_length)
    if settings.windows:
        windows = draw_blocks(windows, settings.windows, generator=generator)
    return _by_blocks(model, batch, states, z, settings, generator, windows)


def local(
    model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMSettings, generator: np.random.Generator
) -> EStep:
    return _by_blocks(model, batch, states, z, settings, generator, _draw_blocks(batch, states, settings, generator))


def first_order(
    model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMSettings, generator: np.random.Generator
) -> EStep:
    drawn = _draw_blocks(batch, states, settings, generator)
    return _by_blocks(model, batch, states, z, settings, generator, drawn, first_order_likelihood)


@torch.no_grad()
def importance_weighted(
    model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMSettings, generator: np.random.Generator
) -> EStep:
    a, T = states.a.detach(), settings.temperature
    samples = draw(batch, a / T, settings.samples, generator)
    likelihood = sample_likelihood(model, batch, states, samples)
    ratio = importance.log_prior_ratio(batch, a, samples, T) if T != 1 else None
    return EStep(
        gamma=importance.importance_gamma(batch, torch.sigmoid(a / T), samples, likelihood / T),
        mask=torch.from_numpy(~batch.sentence_final),
        z_sample=importance.resample(batch, samples, likelihood / T, generator),
        log_evidence=importance.log_evidence(likelihood, ratio),
    )


@torch.no_grad()
def leave_one_out(
    model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMSettings, generator: np.random.Generator
) -> EStep:
    samples = draw(batch, states.a, settings.samples, generator)
    likelihood = sample_likelihood(model, batch, states, samples)
    pi = torch.sigmoid(states.a.detach())
    return EStep(
        gamma=reinforce.reinforce_gamma(batch, pi, samples, likelihood),
        mask=torch.from_numpy(~batch.sentence_final),
        z_sample=pick(batch, samples, generator.integers(len(samples), size=batch.n_documents)),
        log_evidence=importance.log_evidence(likelihood),
    )


STRATEGIES: dict[str, Strategy] = {
    "exact": exact,
    "blocks": blocks,
    "local": local,
    "first-order": first_order,
    "importance": importance_weighted,
    "reinforce": leave_one_out,
}
WITHOUT_POSTERIOR = frozenset({"importance", "reinforce"})  # of blocks: they weigh whole z, or none


@torch.no_grad()
def _by_blocks(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Z,
    settings: EMSettings,
    generator: np.random.Generator,
    blocks: Blocks,
    evaluate: Callable[..., Float[Tensor, "blocks configurations"]] = configuration_likelihood,
) -> EStep:
    likelihood = evaluate(model, batch, states, z, blocks)
    posterior = weigh(batch, states, blocks, likelihood, temperature=settings.temperature, printed_q=settings.printed_q)
    offsets = np.searchsorted(blocks.documents, np.arange(batch.n_documents + 1))
    return EStep(
        gamma=posterior.marginals(),
        mask=torch.from_numpy(covered(blocks, batch.n_words)),
        z_sample=posterior.segmentation(z, posterior.sample(generator)),
        log_evidence=torch.segment_reduce(posterior.evidence, "mean", offsets=torch.from_numpy(offsets)),
        posterior=posterior,
    )


def _draw_blocks(batch: Batch, states: WordStates, settings: EMSettings, generator: np.random.Generator) -> Blocks:
    weights = None
    if settings.focus:
        pi = torch.sigmoid(states.a.detach()).double().numpy()
        weights = np.where(batch.sentence_final, 0, pi * (1 - pi))
    return local_blocks(batch, settings.blocks, settings.block_length, generator=generator, weights=weights)
