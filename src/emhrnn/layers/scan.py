"""Recurrent layers over ragged sequences, in torch and on the native kernels, for any cell: flat rows in, flat
rows out.

In torch, the input projection of all words is one matrix product and so is each weight gradient; only the recurrence
goes step by step, in packed order. The backward pass is written by hand: what does not depend on the step is computed
for all rows at once, so that a backward step is one matrix product and a few light operations.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.cells import Cell, States
from emhrnn.layers.native.torch_kernels import RecurrentGradients, TorchKernels, kernels_for
from emhrnn.layers.packing import Packing


class LearnedRows(NamedTuple):
    """Rows of x that have a gradient although x itself has none, such as the vector of unknown words among pretrained
    ones; x must hold their values already. If the whole input carried a gradient, a recurrent layer would pay a matrix
    product over all words for the sake of a few."""

    rows: Int64[Tensor, " k"]
    vectors: Float[Tensor, "k D"]


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
    h: Tensor
    weights = input_weight, state_weight, bias
    if kernels := kernels_for(x, state_weight):
        tensors = [tensor.contiguous() for tensor in (x, *weights)]
        rows, vectors = learned or (None, None)
        keep = torch.is_grad_enabled() and any(
            tensor is not None and tensor.requires_grad for tensor in (*tensors, vectors)
        )
        h = _NativeScan.apply(kernels, cell, packing, keep, rows, vectors, *tensors)  # type: ignore[no-untyped-call]
        return h
    h = _InputScan.apply(cell, x, *weights, packing, *(learned or (None, None)))  # type: ignore[no-untyped-call]
    return h


def run_projected(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    packing: Packing,
    index: Int64[Tensor, " n"] | None,
    state_weight: Float[Tensor, "gates H"],
) -> Float[Tensor, "n H"]:
    """The same from input projections that exist already."""
    h: Tensor
    if kernels := kernels_for(projection, state_weight):
        tensors = [tensor.contiguous() for tensor in (projection, state_weight)]
        keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        h = _NativeProjectedScan.apply(kernels, cell, packing, keep, index, *tensors)  # type: ignore[no-untyped-call]
        return h
    rows = packing.order if index is None else index.index_select(0, packing.order)
    packed = projection.index_select(0, rows)
    h = _Scan.apply(cell, packed, state_weight, packing)  # type: ignore[no-untyped-call]
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
) -> tuple[Float[Tensor, "n four_H"], Float[Tensor, "gates H"]]:
    """Gradients of the gates before activation and of the state weight."""
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
        d_now[0].add_(dh[rows])
        d_gates = slopes[rows]  # in place: a slope is used once
        cell.backward_(d_gates, tuple(part[rows] for part in passed), d_now)
        d_now[0].addmm_(cell.of_state(d_gates), weight, beta=cell.h_passes)
        end -= size
    d_weight = cell.of_state(slopes)[first:].t() @ before[0][first:]
    return slopes, cell.from_gates(d_weight)


# ------------------------------------------------------------------ on the native kernels


class _NativeScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: TorchKernels,
        cell: Cell,
        packing: Packing,
        keep: bool,
        learned_rows: Tensor | None,
        _learned_vectors: Tensor | None,
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
    ) -> Tensor:
        h, gates, c = kernels.recurrent_forward(
            cell.name, packing, x, None, None, input_weight, state_weight, bias, keep=keep
        )
        if keep:
            ctx.kernels, ctx.cell, ctx.packing = kernels, cell, packing
            ctx.save_for_backward(x, input_weight, state_weight, gates, c, h, learned_rows)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        x, input_weight, state_weight, gates, c, h, learned_rows = ctx.saved_tensors
        d = ctx.kernels.recurrent_backward(
            ctx.cell.name, ctx.packing, x, input_weight, state_weight, gates, c, h, dh.contiguous(),
            projection_rows=learned_rows, need_x=ctx.needs_input_grad[6], need_weights=any(ctx.needs_input_grad[7:]),
        )  # fmt: skip
        d_learned = None if d.projection is None else ctx.cell.of_input(d.projection) @ input_weight
        return None, None, None, None, None, d_learned, d.x, *_of_weights(ctx.cell, d)


class _NativeProjectedScan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: TorchKernels,
        cell: Cell,
        packing: Packing,
        keep: bool,
        rows: Tensor | None,
        projection: Tensor,
        state_weight: Tensor,
    ) -> Tensor:
        h, gates, c = kernels.recurrent_forward(
            cell.name, packing, None, projection, rows, None, state_weight, None, keep=keep
        )
        if keep:
            ctx.kernels, ctx.cell, ctx.packing, ctx.shape = kernels, cell, packing, projection.shape
            ctx.save_for_backward(rows, state_weight, gates, c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        rows, state_weight, gates, c, h = ctx.saved_tensors
        everything = torch.arange(len(h)) if ctx.needs_input_grad[5] else None
        d = ctx.kernels.recurrent_backward(
            ctx.cell.name, ctx.packing, None, None, state_weight, gates, c, h, dh.contiguous(),
            projection_rows=everything, need_x=False, need_weights=ctx.needs_input_grad[6],
        )  # fmt: skip
        d_projection = None if d.projection is None else ctx.cell.of_input(d.projection)
        if d_projection is not None and rows is not None:
            d_projection = d_projection.new_zeros(ctx.shape).index_add_(0, rows, d_projection)
        return None, None, None, None, None, d_projection, _of_weights(ctx.cell, d)[1]


def _of_weights(cell: Cell, d: RecurrentGradients) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Of the layer's weights, from those of four blocks of gates."""
    if d.input_weight is None or d.state_weight is None or d.bias is None:
        return None, None, None
    of_input, of_state = (cell.of_input(d.input_weight.t()).t(), cell.of_state(d.state_weight.t()).t())
    return of_input, cell.from_gates(of_state), cell.of_input(d.bias[None])[0]
