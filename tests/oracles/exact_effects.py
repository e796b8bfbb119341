"""Marginal shares of words as they are defined: each phrase is read word by word, from the left and from the right."""

from itertools import pairwise

import numpy as np


def support(said: np.ndarray, chosen: int, multi_label: bool) -> float:
    """What a phrase says for the chosen class, less the mean of the others (classes,)."""
    if multi_label or len(said) == 1:
        return float(said[chosen])
    return float(said[chosen]) - float(np.delete(said, chosen).mean())


def word_effects(scores: np.ndarray, z: np.ndarray, chosen: np.ndarray, multi_label: bool) -> np.ndarray:
    """scores (words, K, classes): at (t, k - 1) the phrase of k words that ends at word t; chosen (words,)."""
    effects = []
    for first, stop in pairwise([0, *(np.flatnonzero(z) + 1).tolist()]):

        def said(begin: int, end: int, c: int = int(chosen[first])) -> float:
            return support(scores[end - 1, end - begin - 1], c, multi_label) if begin < end else 0.0

        for t in range(first, stop):
            from_left = said(first, t + 1) - said(first, t)
            from_right = said(t, stop) - said(t + 1, stop)
            effects.append((from_left + from_right) / 2)
    return np.array(effects)
