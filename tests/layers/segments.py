"""Scores of phrases for the tests of semi-Markov sums, here and in tests/em."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from tests.layers.shapes import offsets_of

# lengths of sentences, longest phrase (also longer than every sentence), classes, share of forbidden phrases
problems = st.tuples(
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.sampled_from([1, 2, 3, 4, 5, 6, 12]),
    st.integers(1, 5),
    st.sampled_from([0.0, 0.2, 0.6]),
    st.integers(0, 2**20),
)


def problem(
    lengths: list[int], K: int, C: int, forbidden: float = 0.0, seed: int = 0, *, scale: float = 2.0
) -> tuple[Tensor, np.ndarray]:
    """float64 scores and sentence offsets; what reaches over the start of a sentence is NaN, as nothing may read it."""
    rng = np.random.default_rng(seed)
    offsets = offsets_of(lengths)
    scores = rng.normal(size=(int(offsets[-1]), K, C)) * scale
    scores[rng.random(scores.shape) < forbidden] = -np.inf
    scores[outside(offsets, K)] = np.nan
    return torch.from_numpy(scores), offsets


def on_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of arrays, as one of tensors."""

    def call(*arguments: Any, **options: Any) -> Any:
        given = (x.detach().numpy() if isinstance(x, Tensor) else x for x in arguments)
        return tuple(torch.from_numpy(x) for x in as_tuple(function(*given, **options)))

    return call


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def outside(offsets: np.ndarray, K: int) -> np.ndarray:
    """Which phrases (words, K) would reach over the start of their sentence."""
    position = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return np.arange(K) > position[:, None]
