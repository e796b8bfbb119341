"""The scores and the loss of SSWE, one window at a time (docs/paper.md 5)."""

import torch
from torch import Tensor


def scores(scorer, window: list[Tensor]) -> Tensor:
    hidden = scorer.hidden.weight @ torch.cat(window) + scorer.hidden.bias
    return scorer.score.weight @ hidden.clamp(-1, 1) + scorer.score.bias


def hybrid_loss(pairs: list[tuple[tuple[float, float], tuple[float, float]]], polarities: list[int]) -> float:
    """`pairs` are the scores (f0, f1) of a window and of its corrupted twin."""
    total = 0.0
    for ((f0, f1), (r0, r1)), delta in zip(pairs, polarities, strict=True):
        total += 0.5 * max(0.0, 1 - f0 + r0)
        if delta:
            total += 0.5 * max(0.0, 1 - delta * f1 + delta * r1)
    return total / len(pairs)
