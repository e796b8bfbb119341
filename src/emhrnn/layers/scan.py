"""Recurrent layers over ragged sequences, in torch: flat rows in, flat rows out, for any cell.

The input projection of all words is one matrix product and so is each weight gradient; only the recurrence goes step
by step, in packed order. The backward pass is written by hand: what does not depend on the step is computed for all
rows at once, so that a backward step is one matrix product and a few light operations.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.cells import Cell, States
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.native import kernels_for
from emhrnn.layers.native.recurrent import recurrent, recurrent_projected
from emhrnn.layers.packing import Packing


def run(
    cell: Cell,
    x: Float[Tensor, "n D"],
    packing: Packing,
    learned: LearnedRows | None,
    input_weight: Float[Tensor, "gates D"],
    state_weight: Float[Tensor, "gates H"],
    bias: Float[Tensor, " gates"],
) -> Float[Tensor, "n H"]:
    """h of a layer, on the back end at hand."""
    weights = input_weight, state_weight, bias
    if kernels := kernels_for(x, state_weight):
        return recurrent(kernels, cell, packing, x, learned, *weights)
    h: Tensor = _InputScan.apply(cell, x, *weights, packing, *(learned or (None, None)))  # type: ignore[no-untyped-call]
    return h


def run_projected(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    packing: Packing,
    index: Int64[Tensor, " n"] | None,
    state_weight: Float[Tensor, "gates H"],
) -> Float[Tensor, "n H"]:
    """The same from input projections that exist already."""
    if kernels := kernels_for(projection, state_weight):
        return recurrent_projected(kernels, cell, packing, projection, index, state_weight)
    rows = packing.order if index is None else index.index_select(0, packing.order)
    packed = projection.index_select(0, rows)
    h: Tensor = _Scan.apply(cell, packed, state_weight, packing)  # type: ignore[no-untyped-call]
    return h.index_select(0, packing.inverse)


class _InputScan(torch.autograd.Function):
    """Flat x (n, D) -> flat h (n, H)."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        packing: Packing,
        learned_rows: Tensor | None,
        _learned_vectors: Tensor | None,
    ) -> Tensor:
        x = x.index_select(0, packing.order)  # (n, D) packed
        gates, states = scan(cell, torch.addmm(bias, x, input_weight.t()), state_weight, packing)
        ctx.cell, ctx.packing = cell, packing
        ctx.save_for_backward(x, input_weight, state_weight, learned_rows, gates, *states)
        return states[0].index_select(0, packing.inverse)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        x, input_weight, state_weight, learned_rows, gates, *states = ctx.saved_tensors
        packing: Packing = ctx.packing
        dh = dh.index_select(0, packing.order)
        d_gates, d_state_weight = scan_backward(ctx.cell, dh, state_weight, gates, tuple(states), packing)
        d_gates = ctx.cell.of_input(d_gates)
        dx = (d_gates @ input_weight).index_select(0, packing.inverse) if ctx.needs_input_grad[1] else None
        d_learned = None
        if learned_rows is not None:
            d_learned = d_gates.index_select(0, packing.inverse.index_select(0, learned_rows)) @ input_weight
        return None, dx, d_gates.t() @ x, d_state_weight, d_gates.sum(0), None, None, d_learned


class _Scan(torch.autograd.Function):
    """Packed projection (n, gates) -> packed h (n, H). The projection may be overwritten: callers pass a fresh one."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, projection: Tensor, state_weight: Tensor, packing: Packing) -> Tensor:
        gates, states = scan(cell, projection, state_weight, packing)
        ctx.cell, ctx.packing = cell, packing
        ctx.save_for_backward(state_weight, gates, *states)
        return states[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        state_weight, gates, *states = ctx.saved_tensors
        d_gates, d_state_weight = scan_backward(ctx.cell, dh, state_weight, gates, tuple(states), ctx.packing)
        return None, ctx.cell.of_input(d_gates), d_state_weight, None


def scan(
    cell: Cell, projection: Float[Tensor, "n gates"], state_weight: Float[Tensor, "gates H"], packing: Packing
) -> tuple[Float[Tensor, "n four_H"], States]:
    """Runs the recurrence in packed order: activated gates, and states. The projection may be overwritten."""
    n, H = projection.shape[0], state_weight.shape[1]
    gates = cell.opened(projection)
    states = tuple(gates.new_empty(n, H) for _ in range(cell.states))
    transposed = cell.to_gates(state_weight).t().contiguous()
    sizes = packing.batch_sizes.tolist()
    before: States | None = None
    for gates_t, *now in zip(*(torch.split(tensor, sizes) for tensor in (gates, *states)), strict=True):
        if before is not None:
            before = tuple(state[: len(gates_t)] for state in before)
            cell.of_state(gates_t).addmm_(before[0], transposed)
        cell.activate_(gates_t, before, tuple(now))
        before = tuple(now)
    return gates, states


def scan_backward(
    cell: Cell,
    dh: Float[Tensor, "n H"],
    state_weight: Float[Tensor, "gates H"],
    gates: Float[Tensor, "n four_H"],
    states: States,
    packing: Packing,
    behind: States | None = None,
) -> tuple[Float[Tensor, "n four_H"], Float[Tensor, "gates H"]]:
    """Gradients of the gates before activation and of the state weight. `behind` takes those of the states that each
    row hands on."""
    sizes = packing.batch_sizes.tolist()
    first = sum(sizes[:1])
    before = tuple(
        torch.cat([torch.zeros_like(state[:first]), state.index_select(0, packing.previous)]) for state in states
    )
    slopes, passed = cell.slopes(gates, states, before)
    weight = cell.to_gates(state_weight)
    d_states = tuple(torch.zeros_like(state[:first]) for state in states)  # from step t + 1, one row per sequence
    end = len(gates)
    for size in reversed(sizes):
        rows = slice(end - size, end)
        d_now = tuple(d[:size] for d in d_states)
        for d, kept in zip(d_now, behind or (), strict=False):
            kept[rows] = d
        d_now[0].add_(dh[rows])
        d_gates = slopes[rows]  # in place: a slope is used once
        cell.backward_(d_gates, tuple(part[rows] for part in passed), d_now)
        d_now[0].addmm_(cell.of_state(d_gates), weight, beta=cell.h_passes)
        end -= size
    d_weight = cell.of_state(slopes)[first:].t() @ before[0][first:]
    return slopes, cell.from_gates(d_weight)
