"""Configurations: the 2^length ways to set the boundaries of a block.

Configuration c of a block sets slot j to bit j of c. A block with `free` < length positions has only the
configurations c < 2^free; the others would repeat them and are invalid.
"""

from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.em.blocks import Blocks


@lru_cache(maxsize=8)
def bit_table(length: int) -> Bool[np.ndarray, "configurations length"]:
    """Row c holds the bits of configuration c, slot 0 first."""
    table = ((np.arange(1 << length)[:, None] >> np.arange(length)) & 1).astype(bool)
    table.setflags(write=False)
    return table


def valid(blocks: Blocks) -> Bool[np.ndarray, "blocks configurations"]:
    """Which configurations each block has."""
    return np.arange(1 << blocks.length) < (1 << blocks.free)[:, None]


def current(blocks: Blocks, z: Bool[np.ndarray, " words"]) -> Int64[np.ndarray, " blocks"]:
    """The configuration that z itself has in each block."""
    bits = z[blocks.positions] & (blocks.positions >= 0)
    number: np.ndarray = (bits << np.arange(blocks.length)).sum(axis=1)
    return number


def write(
    z: Bool[np.ndarray, " words"], blocks: Blocks, configuration: Int64[np.ndarray, " blocks"]
) -> Bool[np.ndarray, " words"]:
    """z with one configuration of each block put in; where blocks overlap the later one stands."""
    bits = ((configuration[:, None] >> np.arange(blocks.length)) & 1).astype(bool)
    present = blocks.positions >= 0
    z = z.copy()
    z[blocks.positions[present]] = bits[present]
    return z
