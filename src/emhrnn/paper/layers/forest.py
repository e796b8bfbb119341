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
from emhrnn.layers.native.library import CELLS
from emhrnn.layers.native.torch_kernels import check_gates, check_index, kernels_for
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
    """The activated gates if they are to be kept, and the states: h, and c of an LSTM."""
    n, H = len(inputs), state_weight.shape[1]
    states = tuple(projection.new_empty(n, H) for _ in range(cell.states))
    gates = projection.new_empty(n, 4 * H) if keep else None
    if kernels := kernels_for(projection, state_weight):
        sizes = _checked_levels(level_sizes, inputs, parents, len(projection))
        check_gates(projection, state_weight)
        h, c = (*states, None)[:2]
        kernels.call(
            "forest_forward", CELLS[cell.name], len(sizes), sizes, H, inputs, parents, projection,
            state_weight.contiguous(), gates, c, h, torch.get_num_threads(),
        )  # fmt: skip
    else:
        _forest(cell, projection, state_weight, inputs, parents, level_sizes, gates, states)
    return gates, states


def _checked_levels(
    level_sizes: Sequence[int], inputs: Int64[Tensor, " n"], parents: Int64[Tensor, " n"], distinct: int
) -> Int64[Tensor, " levels"]:
    """Level sizes as a tensor, for a forest over `distinct` inputs."""
    n, sizes = len(inputs), torch.tensor(level_sizes, dtype=torch.int64)
    check_index(inputs, distinct)
    roots = int(sizes[0]) if len(sizes) else 0
    if int(sizes.sum()) != n or len(parents) != n:
        raise IndexError(f"{n} inputs, {len(parents)} parents and levels of {int(sizes.sum())} nodes")
    check_index(parents[roots:], n)
    level = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    if bool((level[parents[roots:]] != level[roots:] - 1).any()):
        raise IndexError("a node's parent must be of the level before")
    return sizes


def _forest(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    state_weight: Float[Tensor, "gates H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: list[int],
    kept: Float[Tensor, "n four_H"] | None,
    states: States,
) -> None:
    """The same in torch: fills `kept`, if it is given, and the states."""
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


def _chunks(level_sizes: list[int]) -> list[tuple[slice, bool]]:
    """Runs of rows within one level, and whether it is the level of the roots."""
    chunks = []
    start = 0
    for level, size in enumerate(level_sizes):
        end = start + size
        chunks += [(slice(s, min(s + CHUNK, end)), level == 0) for s in range(start, end, CHUNK)]
        start = end
    return chunks
