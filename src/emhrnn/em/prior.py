"""log p(Z | w) of configurations: independent Bernoulli boundaries and, if wanted, a prior on phrase lengths."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks
from emhrnn.em.configurations import bit_table, current


def log_prior(a: Float[Tensor, " words"], blocks: Blocks) -> Float[Tensor, "blocks configurations"]:
    """sum over the block's slots of log pi where the bit is 1 and log (1 - pi) where it is 0; a = logit pi."""
    positions = torch.from_numpy(blocks.positions)
    present = positions >= 0
    a_slots = torch.where(present, a[positions.clamp(min=0)], 0)  # (blocks, length)
    all_zero = torch.where(present, logsigmoid(-a_slots), 0).sum(1, keepdim=True)
    bits = torch.from_numpy(bit_table(blocks.length).astype(np.float32)).to(a.dtype)
    return all_zero + a_slots @ bits.t()  # log pi - log (1 - pi) = a


def length_prior(
    batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks, rate: float
) -> Float[Tensor, "blocks configurations"]:
    """-n (x + rate^2 / x - 2 rate), x = phrases / words of the document of n words: best, and 0, at x = rate.

    The shape is HS-LSTM's (there x + 0.1 / x); counted per word, it weighs a flip alike in short and long documents."""
    words = batch.document_lengths[blocks.documents][:, None]
    phrases = np.add.reduceat(z.astype(np.int64), batch.word_offsets[:-1])[blocks.documents]
    ones = bit_table(blocks.length).sum(axis=1)  # (configurations,)
    inside = ones[current(blocks, z)]
    x = (phrases - inside)[:, None] + ones
    x = x / words
    return torch.from_numpy((-words * (x + rate**2 / np.maximum(x, 1e-12) - 2 * rate)).astype(np.float32))
