"""The E-step and the two M-steps of Algorithm 1 (docs/paper.md 1.4 - 1.6).

    E       r(z_B)  proportional to  p(z_B | w) p(y | z_B, zhat_-B, w),   gamma_t = E_r[z_t]
    theta   raise   sum over z_B of r(z_B) log p_theta(y | z_B, zhat_-B, w)        r frozen
    pi      raise   sum over t of gamma_t log pi_t + (1 - gamma_t) log (1 - pi_t)

The E-step is pure; the M-steps return losses to be minimised. Training calls E-steps by name; all are called alike and
give the same thing:

    result = STRATEGIES[name](model, batch, states, z, settings, generator)

    exact    all 2^free configurations of the document; up to 20 free positions
    blocks   windows of `block_length` words that cover the document, or `windows` of them, drawn again each time
    local    `blocks` windows around random centres (the paper's EM-HRNN-local)

`z` holds the boundaries outside the blocks (zhat, below), `states` the word layer's output, with or without
gradients: no E-step makes any.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from emhrnn.corpus.batch import Batch
from emhrnn.models.settings import EMConfig
from emhrnn.paper.em.blocks import (
    Blocks,
    bit_table,
    covered,
    draw_blocks,
    exact_blocks,
    local_blocks,
    window_blocks,
    write,
)
from emhrnn.paper.em.likelihood import configuration_likelihood
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.shapes import Bool, Float, Int64


@dataclass(frozen=True, eq=False)
class Posterior:
    """r_B(z_B) = p(z_B | y, zhat_-B, w) of every block; `log_weights` is log r before it is normalised."""

    blocks: Blocks
    sentence_final: Bool[np.ndarray, " words"]
    log_prior: Float[Tensor, "blocks configurations"]  # log p(z_B | w)
    log_likelihood: Float[Tensor, "blocks configurations"]  # log p(y | z_B, zhat_-B, w); -inf: no such configuration
    log_weights: Float[Tensor, "blocks configurations"]

    @cached_property
    def responsibilities(self) -> Float[Tensor, "blocks configurations"]:
        """r, which sums to 1 in each block."""
        return torch.softmax(self.log_weights, dim=1)

    @cached_property
    def evidence(self) -> Float[Tensor, " blocks"]:
        """log p(y | zhat_-B, w): the likelihood with the block's boundaries summed out. Exact block: log p(y | w)."""
        return torch.logsumexp(self.log_prior + self.log_likelihood, dim=1)

    @cached_property
    def slot_marginals(self) -> Float[Tensor, "blocks length"]:
        """gamma of each slot of each block; 0 at absent slots."""
        bits = torch.from_numpy(bit_table(self.blocks.length).astype(np.float32))
        # a sum of probabilities may end one rounding above 1
        return (self.responsibilities @ bits.to(self.log_weights.dtype)).clamp(max=1)

    def marginals(self) -> Float[Tensor, " words"]:
        """gamma_t = E[z_t], averaged where blocks overlap; 1 at sentence ends, NaN at free words in no block."""
        positions = torch.from_numpy(self.blocks.positions)
        present = positions >= 0
        words = positions[present]
        total, times = self.log_weights.new_zeros(2, len(self.sentence_final))
        total.index_add_(0, words, self.slot_marginals[present])
        times.index_add_(0, words, torch.ones_like(words, dtype=times.dtype))
        gamma: Tensor = total / times  # 0 / 0 = NaN
        gamma[torch.from_numpy(self.sentence_final)] = 1
        return gamma

    def sample(self, generator: np.random.Generator) -> Int64[np.ndarray, " blocks"]:
        """A configuration of each block, drawn from r."""
        cumulative = np.cumsum(self.responsibilities.double().numpy(), axis=1)
        threshold = generator.random(len(self.blocks)) * cumulative[:, -1]
        chosen: np.ndarray = (cumulative <= threshold[:, None]).sum(axis=1)
        return chosen

    def segmentation(
        self, z: Bool[np.ndarray, " words"], configuration: Int64[np.ndarray, " blocks"]
    ) -> Bool[np.ndarray, " words"]:
        """z with these configurations put in, for example those of `sample`."""
        return write(z, self.blocks, configuration)


def log_prior(a: Float[Tensor, " words"], blocks: Blocks) -> Float[Tensor, "blocks configurations"]:
    """log p(z_B | w), with a the logit of pi: over the block's slots, the sum of log pi where the bit is 1 and of
    log (1 - pi) where it is 0."""
    positions = torch.from_numpy(blocks.positions)
    present = positions >= 0
    a_slots = torch.where(present, a[positions.clamp(min=0)], 0)  # (blocks, length)
    all_zero = torch.where(present, logsigmoid(-a_slots), 0).sum(1, keepdim=True)
    bits = torch.from_numpy(bit_table(blocks.length).astype(np.float32)).to(a.dtype)
    return all_zero + a_slots @ bits.t()  # log pi - log (1 - pi) = a


TINY = torch.finfo(torch.float32).tiny  # a batch without any weight has the loss 0


@torch.no_grad()
def e_step(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    *,
    printed_q: bool = False,
) -> Posterior:
    """The posterior of every block given the label and z outside the block. See `weigh` for `printed_q`."""
    likelihood = configuration_likelihood(model, batch, states, z, blocks)
    return weigh(batch, states, blocks, likelihood, printed_q=printed_q)


def weigh(
    batch: Batch,
    states: WordStates,
    blocks: Blocks,
    likelihood: Float[Tensor, "blocks configurations"],
    *,
    printed_q: bool = False,
) -> Posterior:
    """Bayes' rule. `printed_q` divides by p(y | Z, w) as the paper
    prints it: the likelihood cancels, the label has no effect, and gamma = pi (docs/paper.md A1)."""
    prior = log_prior(states.a.detach(), blocks)
    weights = torch.where(torch.isneginf(likelihood), -torch.inf, prior) if printed_q else prior + likelihood
    return Posterior(blocks, batch.sentence_final, prior, likelihood, weights)


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


# ------------------------------------------------------------------ zhat: the boundaries outside the blocks
#
# prior   pi > 0.5, the paper's rule; it finds no boundary at all where no pi is that large
# rate    pi over the quantile that keeps the boundary rate; it fails only where all words have the same pi


def above(batch: Batch, a: Float[Tensor, " words"], threshold: float = 0.0) -> Bool[np.ndarray, " words"]:
    """z = 1 where the logit of pi exceeds the threshold (0: pi > 0.5), and at sentence ends."""
    z: np.ndarray = (a.detach() > threshold).numpy() | batch.sentence_final
    return z


def rate_threshold(batch: Batch, a: Float[Tensor, " words"], rate: float) -> float | None:
    """The logit over which z = 1 makes a share `rate` of all words boundaries, the forced ones included: the Lagrange
    multiplier of the constraint mean z = rate. None where every word ends a sentence: that says nothing about it."""
    free, wanted = _free(batch, a, rate)
    if not len(free):
        return None
    return float(torch.quantile(free, min(max(1 - wanted, 0.0), 1.0)))


def rate_shift(batch: Batch, a: Float[Tensor, " words"], rate: float) -> float:
    """The number to subtract from every logit so that the mean of pi, sentence ends counted as 1, becomes `rate`: the
    Lagrange multiplier of that constraint on the prior."""
    free, wanted = _free(batch, a, rate)
    if not len(free) or not 0 < wanted < 1:  # sentences so short that their ends alone are enough, or too few
        return 0.0
    low, high = float(free.min()) - 20, float(free.max()) + 20
    for _ in range(25):  # the mean of pi falls in the shift: halve the interval
        middle = (low + high) / 2
        low, high = (middle, high) if float(torch.sigmoid(free - middle).mean()) > wanted else (low, middle)
    return (low + high) / 2


def _free(batch: Batch, a: Float[Tensor, " words"], rate: float) -> tuple[Float[Tensor, " free"], float]:
    """Logits of the words that do not end a sentence, and the share of them that must be boundaries to keep the rate.
    A document of weight 0 is not there."""
    counted = np.ones(batch.n_words, dtype=bool)
    if batch.weights is not None:
        counted = np.repeat(batch.weights > 0, batch.document_lengths)
    free = a.detach()[torch.from_numpy(counted & ~batch.sentence_final)].double()
    ends = int((counted & batch.sentence_final).sum())
    return free, (rate * int(counted.sum()) - ends) / max(len(free), 1)


# ------------------------------------------------------------------ the E-steps by name


@dataclass(frozen=True, eq=False)
class EStep:
    """What an E-step says about a batch."""

    gamma: Float[Tensor, " words"]  # target for pi; anything where the mask is false
    mask: Bool[Tensor, " words"]  # the words that have a target: free, and reached by this E-step
    z_sample: Bool[np.ndarray, " words"]  # a segmentation drawn from the posterior: theta's M-step encodes it
    log_evidence: Float[Tensor, " documents"]  # log p(y | w) given z outside the blocks, mean of them
    posterior: Posterior  # theta's M-step on all configurations needs it


Z = Bool[np.ndarray, " words"]
Strategy = Callable[[EMHRNN, Batch, WordStates, Z, EMConfig, np.random.Generator], EStep]
ChooseBlocks = Callable[[Batch, WordStates, EMConfig, np.random.Generator], Blocks]


def _strategy(choose: ChooseBlocks) -> Strategy:
    """The E-step on the blocks that are chosen."""

    @torch.no_grad()
    def run(
        model: EMHRNN, batch: Batch, states: WordStates, z: Z, settings: EMConfig, generator: np.random.Generator
    ) -> EStep:
        blocks = choose(batch, states, settings, generator)
        posterior = e_step(model, batch, states, z, blocks, printed_q=settings.printed_q)
        offsets = np.searchsorted(blocks.documents, np.arange(batch.n_documents + 1))
        return EStep(
            gamma=posterior.marginals(),
            mask=torch.from_numpy(covered(blocks, batch.n_words)),
            z_sample=posterior.segmentation(z, posterior.sample(generator)),
            log_evidence=torch.segment_reduce(posterior.evidence, "mean", offsets=torch.from_numpy(offsets)),
            posterior=posterior,
        )

    return run


def _windows(batch: Batch, states: WordStates, settings: EMConfig, generator: np.random.Generator) -> Blocks:
    """Windows that cover each document, or some of them."""
    windows = window_blocks(batch, settings.block_length)
    return draw_blocks(windows, settings.windows, generator=generator) if settings.windows else windows


def _around_centres(batch: Batch, states: WordStates, settings: EMConfig, generator: np.random.Generator) -> Blocks:
    """Windows around random centres."""
    weights = None
    if settings.focus:
        pi = torch.sigmoid(states.a.detach()).double().numpy()
        weights = np.where(batch.sentence_final, 0, pi * (1 - pi))
    return local_blocks(batch, settings.blocks, settings.block_length, generator=generator, weights=weights)


STRATEGIES: dict[str, Strategy] = {
    "exact": _strategy(lambda batch, *_: exact_blocks(batch)),
    "blocks": _strategy(_windows),
    "local": _strategy(_around_centres),
}
