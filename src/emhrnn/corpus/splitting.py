"""Dividing rows in two so that every class is divided alike."""

import numpy as np
from jaxtyping import Int64

from emhrnn.errors import ConfigError, DataError


def stratified_split(
    groups: Int64[np.ndarray, " documents"], fraction: float, generator: np.random.Generator
) -> tuple[Int64[np.ndarray, " rest"], Int64[np.ndarray, " held_out"]]:
    """Row numbers of the larger part and of the held-out part, each in rising order.

    The held-out part is `fraction` of all rows, and of each group up to one row. A group never leaves the larger part
    whole, so that no class is there for validation alone.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"a part of {fraction} cannot be split off; give a number between 0 and 1")
    order = generator.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    _, sizes = np.unique(groups, return_counts=True)
    ends = np.cumsum(sizes)
    # Rounding the running total, not each group, keeps the overall share exact even for many small groups.
    taken = np.diff(np.rint(ends * fraction).astype(np.int64), prepend=0)
    taken = np.minimum(taken, sizes - 1)
    place = np.arange(len(groups)) - np.repeat(ends - sizes, sizes)
    held_out = np.zeros(len(groups), dtype=bool)
    held_out[order] = place < np.repeat(taken, sizes)
    if len(sizes) == len(groups) > 2:
        raise DataError(f"each of the {len(groups)} documents has a label of its own; is it the right label column?")
    if not held_out.any():
        raise DataError(f"{len(groups)} documents are too few to split off {fraction:.0%}; give more documents")
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
