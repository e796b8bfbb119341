"""Ragged shapes for the tests of this folder."""

import numpy as np
import torch
from hypothesis import strategies as st

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=9)
hidden_sizes = st.sampled_from([1, 3, 7, 8, 9, 16, 17, 50])
seeds = st.integers(0, 2**20)


def offsets_of(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths], dtype=np.int64)


def generator_of(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
