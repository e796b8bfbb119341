"""What shares of experts are worth, one document after the other, and the best of a grid that closes in."""

import itertools

import numpy as np


def loss(said: np.ndarray, labels: np.ndarray, shares: np.ndarray) -> float:
    """Minus the log-likelihood of the labels and of a normal prior around 1, per document."""
    total = 0.5 * sum((share - 1) ** 2 for share in shares)
    for document, label in enumerate(labels):
        x = sum(share * expert[document].astype(np.float64) for share, expert in zip(shares, said, strict=True))
        if labels.ndim == 2:
            total += sum(
                np.logaddexp(0, -value if answer > 0.5 else value) for value, answer in zip(x, label, strict=True)
            )
        else:
            total += np.logaddexp.reduce(x) - x[label]
    return float(total / len(labels))


def best_shares(said: np.ndarray, labels: np.ndarray, most: float) -> np.ndarray:
    """Five values of each share around the best so far, ever closer. The loss is convex, so none is passed by."""
    best, width = np.ones(len(said)), most
    while width > 1e-4:
        axes = [np.clip(share + width * np.linspace(-1, 1, 5), 0, most) for share in best]
        before, best = best, np.array(min(itertools.product(*axes), key=lambda shares: loss(said, labels, shares)))
        if np.allclose(before, best):
            width /= 2
    return best
