"""Attention one segment at a time."""

import itertools

import torch
from torch import Tensor


def attend(h: Tensor, scores: Tensor, offsets: list[int]) -> tuple[Tensor, Tensor]:
    pooled, weights = [], []
    for start, end in itertools.pairwise(offsets):
        weight = scores[start:end].softmax(0)
        pooled.append(weight @ h[start:end])
        weights.append(weight)
    return torch.stack(pooled), torch.cat(weights)


def pair_attention(left: Tensor, right: Tensor, context: Tensor, variants: list[list[tuple[int, int]]]) -> Tensor:
    A = len(context)
    logits = []
    for pairs in variants:
        sums = torch.stack([left[f] + right[b] for f, b in pairs])
        logits.append((sums[:, :A].tanh() @ context).softmax(0) @ sums[:, A:])
    return torch.stack(logits)
