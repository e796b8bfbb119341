"""Dropout whose randomness comes from an explicit generator."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

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
        whole = x.new_empty(rows, *x.shape[1:]).bernoulli_(1 - p, generator=generator)
        keep = whole[first : first + len(x)].clone()
    else:
        keep = torch.empty_like(x).bernoulli_(1 - p, generator=generator)
    return x * keep.div_(1 - p)
