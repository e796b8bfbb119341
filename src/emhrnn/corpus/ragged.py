"""Gathering from ragged arrays without a loop over their parts."""

import numpy as np
from jaxtyping import Int64


def offsets_of(lengths: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n_plus_1"]:
    """0 and the running sum: part i is flat[offsets[i] : offsets[i + 1]]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: Int64[np.ndarray, " n"], lengths: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " total"]:
    """start, start + 1, ... of every part, one part after the other."""
    offsets = offsets_of(lengths)
    index = np.arange(offsets[-1])
    index += np.repeat(starts - offsets[:-1], lengths)
    return index
