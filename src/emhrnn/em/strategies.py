"""The E-steps by name. All are called alike and give the same thing, so the training loop need not know which it has:

    result = STRATEGIES[name](model, batch, states, z, settings, generator)

    exact    all 2^free configurations of the document; up to 20 free positions
    blocks   windows of `block_length` words that cover the document, or `windows` of them, drawn anew each time
    local    `blocks` windows around random centres (the paper's EM-HRNN-local)

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
from emhrnn.em.blocks import EXACT_LIMIT, Blocks, covered, draw_blocks, exact_blocks, local_blocks, window_blocks
from emhrnn.em.posterior import Posterior
from emhrnn.em.steps import e_step
from emhrnn.models.em_hrnn import EMHRNN, WordStates


@dataclass(frozen=True)
class EMSettings:
    blocks: int = 10  # local: blocks per document
    block_length: int = 5  # blocks, local: words per block
    windows: int = 0  # blocks: of the document's windows, so many; 0: all
    focus: bool = False  # local: centres in proportion to pi (1 - pi)
    temperature: float = 1.0  # r^(1 / T)
    printed_q: bool = False  # the paper's misprinted denominator
    exact_limit: int = EXACT_LIMIT  # exact: most free positions


@dataclass(frozen=True, eq=False)
class EStep:
    """What an E-step says about a batch."""

    gamma: Float[Tensor, " words"]  # target for pi; anything where the mask is false
    mask: Bool[Tensor, " words"]  # the words that have a target: free, and reached by this E-step
    z_sample: Bool[np.ndarray, " words"]  # a segmentation drawn from the posterior: theta's M-step encodes it
    log_evidence: Float[Tensor, " documents"]  # log p(y | w) given z outside the blocks, mean of them
    posterior: Posterior  # theta's M-step on all configurations needs it


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


STRATEGIES: dict[str, Strategy] = {
    "exact": exact,
    "blocks": blocks,
    "local": local,
}


@torch.no_grad()
def _by_blocks(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Z,
    settings: EMSettings,
    generator: np.random.Generator,
    blocks: Blocks,
) -> EStep:
    posterior = e_step(model, batch, states, z, blocks, temperature=settings.temperature, printed_q=settings.printed_q)
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
