"""The label loss document by document, in plain numbers."""

import math


def label_loss(
    logits: list[list[float]], labels: list[int], weights: list[float], class_weights: list[float], smoothing: float
) -> float:
    total = weight_of_all = 0.0
    for scores, y, weight in zip(logits, labels, weights, strict=True):
        log_sum = math.log(sum(math.exp(score) for score in scores))
        log_p = [score - log_sum for score in scores]
        loss = -(1 - smoothing) * log_p[y] - smoothing * sum(log_p) / len(log_p)
        total += weight * class_weights[y] * loss
        weight_of_all += weight * class_weights[y]
    return total / weight_of_all if weight_of_all else 0.0
