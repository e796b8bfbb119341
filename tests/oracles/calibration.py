"""Temperature by trying many, and calibration error by looking at one prediction after the other."""

import numpy as np


def loss(logits: np.ndarray, labels: np.ndarray, temperature: float) -> float:
    """Minus the mean log-likelihood of the labels under softmax or sigmoid of logits / temperature."""
    x = logits.astype(np.float64) / temperature
    if labels.ndim == 2:
        return float(np.log1p(np.exp(np.where(labels > 0.5, -x, x))).sum(axis=1).mean())
    return float(np.mean([np.log(np.exp(row - row[label]).sum()) for row, label in zip(x, labels, strict=True)]))


def best_temperature(logits: np.ndarray, labels: np.ndarray, low: float, high: float) -> float:
    grid = np.geomspace(low, high, 401)
    return float(min(grid, key=lambda temperature: loss(logits, labels, temperature)))


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int) -> float:
    total = 0.0
    for b in range(bins):
        inside = [
            i for i, p in enumerate(confidence) if b / bins < p <= (b + 1) / bins or (b == 0 and p == 0)
        ]  # fmt: skip
        if inside:
            distance = abs(np.mean([confidence[i] for i in inside]) - np.mean([right[i] for i in inside]))
            total += len(inside) / len(confidence) * float(distance)
    return total
