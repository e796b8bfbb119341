"""The prior and the posterior over the boundaries of blocks; the posterior is an object that
answers the questions people ask of it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from emhrnn.paper.em.blocks import Blocks, bit_table, write
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

    def entropy(self) -> Float[Tensor, " blocks"]:
        """In nats."""
        entropy: Tensor = torch.special.entr(self.responsibilities).sum(dim=1)
        return entropy

    def argmax(self) -> Int64[np.ndarray, " blocks"]:
        """The most probable configuration of each block."""
        return self.log_weights.argmax(dim=1).numpy()

    def sample(self, generator: np.random.Generator) -> Int64[np.ndarray, " blocks"]:
        """A configuration of each block, drawn from r."""
        cumulative = np.cumsum(self.responsibilities.double().numpy(), axis=1)
        threshold = generator.random(len(self.blocks)) * cumulative[:, -1]
        chosen: np.ndarray = (cumulative <= threshold[:, None]).sum(axis=1)
        return chosen

    def segmentation(
        self, z: Bool[np.ndarray, " words"], configuration: Int64[np.ndarray, " blocks"]
    ) -> Bool[np.ndarray, " words"]:
        """z with these configurations put in, for example those of `sample` or `argmax`."""
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
