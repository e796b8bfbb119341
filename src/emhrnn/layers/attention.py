"""Attention over ragged segments: one softmax per segment, each with its own maximum. The same class serves words in
phrases, phrases in sentences and sentences in documents.

    u_t = tanh(W h_t + b)      weights = softmax of u_t . context within the segment      pooled = sum of weights_t h_t
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from emhrnn.layers.native import attention as native
from emhrnn.layers.native import kernels_for


class AttentionPool(nn.Module):
    """Scores rows and pools each segment of them."""

    def __init__(self, input_size: int, attention_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(input_size)
        self.weight = nn.Parameter(torch.empty(attention_size, input_size).uniform_(-bound, bound, generator=generator))
        self.bias = nn.Parameter(torch.zeros(attention_size))
        self.context = nn.Parameter(
            torch.empty(attention_size).normal_(0, 1 / math.sqrt(attention_size), generator=generator)
        )

    def scores(self, h: Float[Tensor, "n H"]) -> Float[Tensor, " n"]:
        if kernels := kernels_for(h, self.weight):
            return native.attention_scores(kernels, h, self.weight, self.bias, self.context)
        return torch.tanh(nn.functional.linear(h, self.weight, self.bias)) @ self.context

    def forward(
        self, h: Float[Tensor, "n H"], offsets: Int64[Tensor, " m_plus_1"]
    ) -> tuple[Float[Tensor, "m H"], Float[Tensor, " n"]]:
        return attend(h, self.scores(h), offsets)


def attend(
    h: Float[Tensor, "n H"], scores: Float[Tensor, " n"], offsets: Int64[Tensor, " m_plus_1"]
) -> tuple[Float[Tensor, "m H"], Float[Tensor, " n"]]:
    """Pooled rows and attention weights of the segments offsets[i] : offsets[i + 1]; an empty segment pools to zero."""
    if kernels := kernels_for(h, scores):
        return native.attend(kernels, h, scores, offsets)
    pooled, weights = _Attend.apply(h, scores, offsets)  # type: ignore[no-untyped-call]
    return pooled, weights


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        segment = segments(offsets)
        weights = segment_softmax(scores, offsets, segment)
        ctx.save_for_backward(h, weights, segment)
        ctx.set_materialize_grads(False)
        return weighted_sums(h, weights, offsets, torch.arange(len(h))), weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_pooled: Tensor | None, d_weights: Tensor | None) -> tuple[Tensor | None, ...]:
        h, weights, segment = ctx.saved_tensors
        dh = None
        if d_pooled is not None:
            rows = d_pooled.index_select(0, segment)  # (n, H)
            through_h = (rows * h).sum(1)
            d_weights = through_h if d_weights is None else d_weights + through_h
            dh = rows.mul_(weights.unsqueeze(1))
        if d_weights is None:
            return None, None, None
        weighted = weights * d_weights
        means = weighted.new_zeros(int(segment[-1]) + 1 if len(segment) else 0).index_add_(0, segment, weighted)
        return dh, weighted.addcmul_(weights, means.index_select(0, segment), value=-1), None


def segments(offsets: Int64[Tensor, " m_plus_1"]) -> Int64[Tensor, " n"]:
    """The segment of each row."""
    return torch.repeat_interleave(offsets.diff())


def segment_softmax(
    scores: Float[Tensor, " n"], offsets: Int64[Tensor, " m_plus_1"], segment: Int64[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """Softmax within each segment, less the segment's own maximum: no segment underflows because of another."""
    highest = torch.segment_reduce(scores, "max", offsets=offsets, axis=0)
    weights = (scores - highest.index_select(0, segment)).exp_()
    totals = torch.zeros_like(highest).index_add_(0, segment, weights)
    return weights.div_(totals.index_select(0, segment))


def weighted_sums(
    h: Float[Tensor, "n H"],
    weights: Float[Tensor, " k"],
    offsets: Int64[Tensor, " m_plus_1"],
    index: Int64[Tensor, " k"],
) -> Float[Tensor, "m H"]:
    """Row i is the sum of weights_t h[index_t] over t in offsets[i] : offsets[i + 1]."""
    # embedding_bag reads the rows where they are: two to three times faster than gather and index_add.
    return nn.functional.embedding_bag(
        index, h, offsets, mode="sum", per_sample_weights=weights, include_last_offset=True
    )
