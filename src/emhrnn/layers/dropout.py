"""Dropout whose randomness comes from an explicit generator."""

import torch
from jaxtyping import Float
from torch import Tensor


def dropout(x: Float[Tensor, "*shape"], p: float, generator: torch.Generator | None) -> Float[Tensor, "*shape"]:
    """Zeroes entries with probability p and scales the rest by 1 / (1 - p); without a generator, x as it is."""
    if generator is None or p == 0:
        return x
    keep = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
    return x * keep.div_(1 - p)
