"""log p(Z | w) of configurations: independent Bernoulli boundaries."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import logsigmoid

from emhrnn.em.blocks import Blocks
from emhrnn.em.configurations import bit_table


def log_prior(a: Float[Tensor, " words"], blocks: Blocks) -> Float[Tensor, "blocks configurations"]:
    """sum over the block's slots of log pi where the bit is 1 and log (1 - pi) where it is 0; a = logit pi."""
    positions = torch.from_numpy(blocks.positions)
    present = positions >= 0
    a_slots = torch.where(present, a[positions.clamp(min=0)], 0)  # (blocks, length)
    all_zero = torch.where(present, logsigmoid(-a_slots), 0).sum(1, keepdim=True)
    bits = torch.from_numpy(bit_table(blocks.length).astype(np.float32)).to(a.dtype)
    return all_zero + a_slots @ bits.t()  # log pi - log (1 - pi) = a
