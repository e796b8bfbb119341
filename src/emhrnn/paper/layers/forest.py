"""A recurrent layer over trees of shared prefixes: node i reads input inputs[i] in the state of its parent.

    a -> b -> c            nodes in level order: a | b d | c e
      -> d -> e            parents:             -1 | 0 0 | 1 2       level_sizes 1 2 2

Sequences that begin alike are computed once. attention.py pools the paths from root to node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.cells import Cell, States
from emhrnn.layers.native.torch_kernels import kernels_for
from emhrnn.layers.recurrent import Recurrent

CHUNK = 2048  # nodes per matrix product: the gates of a chunk stay in the cache


def forest_h(
    layer: Recurrent,
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: Int64[np.ndarray, " levels"] | Sequence[int],
) -> Float[Tensor, "n H"]:
    """h of all nodes, which come level by level: roots first (parent -1), then their children, and so on."""
    projection = layer.project(x)
    keep = torch.is_grad_enabled() and (projection.requires_grad or layer.state_weight.requires_grad)
    nodes = inputs.contiguous(), parents.contiguous(), list(map(int, level_sizes))
    h: Tensor = _Forest.apply(layer.cell, projection, layer.state_weight, *nodes, keep)  # type: ignore[no-untyped-call]
    return h


class _Forest(torch.autograd.Function):
    """Projections of the distinct inputs (m, gates) -> h of the nodes (n, H)."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        projection: Tensor,
        state_weight: Tensor,
        inputs: Tensor,
        parents: Tensor,
        level_sizes: list[int],
        keep: bool,
    ) -> Tensor:
        gates, states = _run(cell, projection, state_weight, inputs, parents, level_sizes, keep=keep)
        if keep:
            ctx.cell, ctx.level_sizes, ctx.distinct = cell, level_sizes, len(projection)
            ctx.save_for_backward(state_weight, inputs, parents, gates, *states)
        return states[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        state_weight, inputs, parents, gates, *states = ctx.saved_tensors
        cell: Cell = ctx.cell
        weight = cell.to_gates(state_weight)
        d_states = (dh.clone(), *(torch.zeros_like(state) for state in states[1:]))  # children add to parents
        d_projection = gates.new_zeros(ctx.distinct, len(weight))
        d_weight = torch.zeros_like(weight)
        for rows, root in reversed(list(_chunks(ctx.level_sizes))):
            before = tuple(
                torch.zeros_like(state[rows]) if root else state.index_select(0, parents[rows]) for state in states
            )
            d_gates, passed = cell.slopes(gates[rows], tuple(state[rows] for state in states), before)
            d_now = tuple(d[rows].clone() for d in d_states)  # becomes that of the states before
            cell.backward_(d_gates, passed, d_now)
            d_projection.index_add_(0, inputs[rows], cell.of_input(d_gates))
            if not root:
                of_state = cell.of_state(d_gates)
                d_weight.addmm_(of_state.t(), before[0])
                d_now[0].addmm_(of_state, weight, beta=cell.h_passes)
                for d, d_before in zip(d_states, d_now, strict=True):
                    d.index_add_(0, parents[rows], d_before)
        return None, d_projection, cell.from_gates(d_weight), None, None, None, None


def _run(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    state_weight: Float[Tensor, "gates H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: list[int],
    *,
    keep: bool,
) -> tuple[Float[Tensor, "n four_H"] | None, States]:
    """The activated gates if they are to be kept, and the states, on the back end at hand."""
    if kernels := kernels_for(projection, state_weight):
        return kernels.forest_forward(
            cell.name, level_sizes, inputs, parents, projection, state_weight.contiguous(), keep=keep
        )
    return _forest(cell, projection, state_weight, inputs, parents, level_sizes, keep=keep)


def _forest(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    state_weight: Float[Tensor, "gates H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: list[int],
    *,
    keep: bool,
) -> tuple[Float[Tensor, "n four_H"] | None, States]:
    n, H = len(inputs), state_weight.shape[1]
    states = tuple(projection.new_empty(n, H) for _ in range(cell.states))
    kept = projection.new_empty(n, 4 * H) if keep else None
    transposed = cell.to_gates(state_weight).t().contiguous()
    for rows, root in _chunks(level_sizes):
        gates = cell.opened(projection.index_select(0, inputs[rows]))
        before = None
        if not root:
            before = tuple(state.index_select(0, parents[rows]) for state in states)
            cell.of_state(gates).addmm_(before[0], transposed)
        cell.activate_(gates, before, tuple(state[rows] for state in states))
        if kept is not None:
            kept[rows] = gates
    return kept, states


def _chunks(level_sizes: list[int]) -> list[tuple[slice, bool]]:
    """Runs of rows within one level, and whether it is the level of the roots."""
    chunks = []
    start = 0
    for level, size in enumerate(level_sizes):
        end = start + size
        chunks += [(slice(s, min(s + CHUNK, end)), level == 0) for s in range(start, end, CHUNK)]
        start = end
    return chunks
