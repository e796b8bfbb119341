"""An LSTM over trees of shared prefixes: node i reads input inputs[i] in the state of its parent.

    a -> b -> c            nodes in level order: a | b d | c e
      -> d -> e            parents:             -1 | 0 0 | 1 2       level_sizes 1 2 2

Sequences that begin alike are computed once. With it comes the attention that pools each path from root to node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.attention import attend, segment_softmax, segments, weighted_sums
from emhrnn.layers.cell import cell_, cell_slopes
from emhrnn.layers.lstm import LSTM
from emhrnn.layers.native import kernels_for

CHUNK = 2048  # nodes per matrix product: the gates of a chunk stay in the cache


def forest_lstm(
    lstm: LSTM,
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: Int64[np.ndarray, " levels"] | Sequence[int],
) -> Float[Tensor, "n H"]:
    """States of all nodes, which come level by level: roots first (parent -1), then their children, and so on."""
    projection = lstm.project(x)
    keep = torch.is_grad_enabled() and (projection.requires_grad or lstm.state_weight.requires_grad)
    h: Tensor = _Forest.apply(  # type: ignore[no-untyped-call]
        projection, lstm.state_weight, inputs.contiguous(), parents.contiguous(), list(map(int, level_sizes)), keep
    )
    return h


@torch.no_grad()
def forest_states(
    lstm: LSTM,
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: Int64[np.ndarray, " levels"] | Sequence[int],
) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n H"]]:
    """h as from `forest_lstm`, and c; without gradients."""
    h, _, c = _run(lstm.project(x), lstm.state_weight, inputs.contiguous(), parents.contiguous(), level_sizes)
    return h, c


def attend_paths(
    h: Float[Tensor, "n H"],
    scores: Float[Tensor, " n"],
    offsets: Int64[Tensor, " m_plus_1"],
    index: Int64[Tensor, " k"],
) -> Float[Tensor, "m H"]:
    """Attention over the rows index[offsets[i] : offsets[i + 1]] of h, for each i."""
    if torch.is_grad_enabled() and (h.requires_grad or scores.requires_grad):
        return attend(h.index_select(0, index), scores.index_select(0, index), offsets)[0]
    if kernels := kernels_for(h, scores):
        return kernels.attend(*(tensor.contiguous() for tensor in (h, scores, offsets, index)), keep=False)[0]
    weights = segment_softmax(scores.index_select(0, index), offsets, segments(offsets))
    return weighted_sums(h, weights, offsets, index)


class _Forest(torch.autograd.Function):
    """Projections of the distinct inputs (m, 4H) -> states of the nodes (n, H)."""

    @staticmethod
    def forward(
        ctx: Any,
        projection: Tensor,
        state_weight: Tensor,
        inputs: Tensor,
        parents: Tensor,
        level_sizes: list[int],
        keep: bool,
    ) -> Tensor:
        h, gates, c = _run(projection, state_weight, inputs, parents, level_sizes, keep=keep)
        if keep:
            ctx.level_sizes, ctx.distinct = level_sizes, len(projection)
            ctx.save_for_backward(state_weight, inputs, parents, gates, c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        state_weight, inputs, parents, gates, c, h = ctx.saved_tensors
        H = c.shape[1]
        d_h, d_c = dh.clone(), torch.zeros_like(c)  # children add to their parents' rows
        d_projection = gates.new_zeros(ctx.distinct, 4 * H)
        d_state_weight = torch.zeros_like(state_weight)
        for rows, root in reversed(list(_chunks(ctx.level_sizes))):
            c_prev = torch.zeros_like(c[rows]) if root else c.index_select(0, parents[rows])
            d_gates, through_h = cell_slopes(gates[rows], c[rows], c_prev)
            d_c_t = d_c[rows].addcmul_(through_h, d_h[rows])
            d_gates[:, : 3 * H].view(-1, 3, H).mul_(d_c_t.unsqueeze(1))
            d_gates[:, 3 * H :].mul_(d_h[rows])
            d_projection.index_add_(0, inputs[rows], d_gates)
            if not root:
                d_state_weight.addmm_(d_gates.t(), h.index_select(0, parents[rows]))
                d_h.index_add_(0, parents[rows], d_gates @ state_weight)
                d_c.index_add_(0, parents[rows], d_c_t * gates[rows, H : 2 * H])
        return d_projection, d_state_weight, None, None, None, None


def _run(
    projection: Float[Tensor, "m four_H"],
    state_weight: Float[Tensor, "four_H H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: Int64[np.ndarray, " levels"] | Sequence[int],
    *,
    keep: bool = False,
) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n four_H"] | None, Float[Tensor, "n H"]]:
    """h, the activated gates if they are to be kept, and c, on the back end at hand."""
    sizes = [int(size) for size in level_sizes]
    if kernels := kernels_for(projection, state_weight):
        return kernels.forest_forward(sizes, inputs, parents, projection, state_weight.contiguous(), keep=keep)
    return _forest(projection, state_weight, inputs, parents, sizes, keep=keep)


def _forest(
    projection: Float[Tensor, "m four_H"],
    state_weight: Float[Tensor, "four_H H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: list[int],
    *,
    keep: bool,
) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n four_H"] | None, Float[Tensor, "n H"]]:
    """h, the activated gates if they are to be kept, and c."""
    n, H = len(inputs), state_weight.shape[1]
    h, c = projection.new_empty(n, H), projection.new_empty(n, H)
    kept = projection.new_empty(n, 4 * H) if keep else None
    transposed = state_weight.t().contiguous()
    for rows, root in _chunks(level_sizes):
        gates = projection.index_select(0, inputs[rows])
        c_prev = None
        if not root:
            gates.addmm_(h.index_select(0, parents[rows]), transposed)
            c_prev = c.index_select(0, parents[rows])
        cell_(gates, c_prev, c[rows], h[rows])
        if kept is not None:
            kept[rows] = gates
    return h, kept, c


def _chunks(level_sizes: list[int]) -> list[tuple[slice, bool]]:
    """Runs of rows within one level, and whether it is the level of the roots."""
    chunks = []
    start = 0
    for level, size in enumerate(level_sizes):
        end = start + size
        chunks += [(slice(s, min(s + CHUNK, end)), level == 0) for s in range(start, end, CHUNK)]
        start = end
    return chunks
