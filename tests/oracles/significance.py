"""Paired tests by enumeration of everything that could have happened, on tiny inputs."""

from itertools import product

import numpy as np


def mcnemar(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The share of all ways to swap the two systems' answers, document by document, that differ at least as much."""
    apart = [(int(a), int(b)) for a, b in zip(ours, theirs, strict=True) if a != b]
    seen = abs(sum(a - b for a, b in apart))
    ways = list(product((1, -1), repeat=len(apart)))
    as_far = [abs(sum(s * (a - b) for s, (a, b) in zip(signs, apart, strict=True))) >= seen for signs in ways]
    return sum(as_far) / len(ways)


def bootstrap_differences(ours: np.ndarray, theirs: np.ndarray) -> list[float]:
    """The difference of mean accuracies in every resample of documents, and of each system's seeds."""
    documents = range(ours.shape[1])
    return [
        _mean(ours[:, list(rows)].mean(1), a) - _mean(theirs[:, list(rows)].mean(1), b)
        for rows in product(documents, repeat=len(documents))
        for a in product(range(len(ours)), repeat=len(ours))
        for b in product(range(len(theirs)), repeat=len(theirs))
    ]


def _mean(of_seeds: np.ndarray, drawn: tuple[int, ...]) -> float:
    """Of the drawn seeds, sqrt(n / (n - 1)) times as far from the mean of all n as it is."""
    n, mean = len(of_seeds), of_seeds.mean()
    return float(mean + (n / max(n - 1, 1)) ** 0.5 * (of_seeds[list(drawn)].mean() - mean))
