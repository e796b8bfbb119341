"""Dropout whose randomness comes from an explicit generator."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from emhrnn.shapes import Bool, Float

Place = Callable[[int], tuple[int, int]]  # rows here -> the first of them in the whole batch, and all rows there


class SharedGenerator(torch.Generator):
    """For a part of a batch: its rows get the noise that they would get if the whole batch were here."""

    place: Place

    def __new__(cls, generator: torch.Generator, place: Place) -> "SharedGenerator":
        shared: SharedGenerator = super().__new__(cls)
        shared.set_state(generator.get_state())
        shared.place = place
        return shared


def dropout(x: Float[Tensor, "*shape"], p: float, generator: torch.Generator | None) -> Float[Tensor, "*shape"]:
    """Zeroes entries with probability p and scales the rest by 1 / (1 - p); without a generator, x as it is."""
    if generator is None or p == 0:
        return x
    if isinstance(generator, SharedGenerator):
        first, rows = generator.place(len(x))
        kept = _kept((rows, *x.shape[1:]), p, generator)[first : first + len(x)]
    else:
        kept = _kept(tuple(x.shape), p, generator)
    return x * kept.to(x.dtype).mul_(1 / (1 - p))


def _kept(shape: tuple[int, ...], p: float, generator: torch.Generator) -> Bool[Tensor, "*shape"]:
    """Where nothing is zeroed. One random number of 64 bits serves four entries, with p to one part in 65,536;
    `bernoulli_` draws one for each, which was a fifth of a training step."""
    n = math.prod(shape)
    bits = torch.empty(-(-n // 4), dtype=torch.int64).random_(-(1 << 63), None, generator=generator)
    return (bits.view(torch.int16)[:n] >= round(p * (1 << 16)) - (1 << 15)).view(shape)
