"""Recurrent layers over ragged sequences: flat rows in, flat rows out, zero state at each sequence's start.

cells.py has the equations; the rows of the weights stand in the order i f g o of an LSTM, r u n of a GRU. The native
kernels read and write flat rows. In torch, only the recurrence goes step by step, in packed order; its backward pass is
written by hand: what does not depend on the step is computed for all rows at once, so that a backward step is one
matrix product and a few light operations.
"""

from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from emhrnn.layers.cells import Cell, GRUCell, LSTMCell, States, gate_weights
from emhrnn.layers.linear import linear
from emhrnn.layers.native.library import CELLS, CellName, Kernels, check_index
from emhrnn.layers.native.torch_kernels import check_columns, check_gates, kernels_for
from emhrnn.layers.order import Order
from emhrnn.shapes import Float, Int64

Gradients = tuple[Tensor | None, ...]


class LearnedRows(NamedTuple):
    """Rows of x that have a gradient although x itself has none, such as the vector of unknown words among pretrained
    ones; x must hold their values already. If the whole input carried a gradient, a recurrent layer would pay a matrix
    product over all words for the sake of a few."""

    rows: Int64[Tensor, " k"]
    vectors: Float[Tensor, "k D"]


class Recurrent(nn.Module):
    """Either of the two recurrent layers, where it does not matter which."""

    cell: ClassVar[Cell]
    blocks: ClassVar[int]  # of gates, hidden_size rows each

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        weights = gate_weights(self.blocks, input_size, hidden_size, generator)
        self.input_weight, self.state_weight, self.bias = weights

    @property
    def hidden_size(self) -> int:
        return self.state_weight.shape[1]

    def forward(
        self, x: Float[Tensor, "n D"], order: Order, learned: LearnedRows | None = None
    ) -> Float[Tensor, "n H"]:
        """`learned`: rows of a frozen x that have a gradient all the same."""
        if kernels := kernels_for(x, self.state_weight):
            rows, vectors = learned or (None, None)
            return _native(
                kernels, self.cell, order, None, rows, vectors, x, self.input_weight, self.state_weight, self.bias
            )
        return self.forward_projected(self.project(x if learned is None else x.index_copy(0, *learned)), order)

    def project(self, x: Float[Tensor, "m D"]) -> Float[Tensor, "m gates"]:
        """The input's part of the gates, W x + b; over a whole vocabulary, it is a table for `forward_projected`."""
        return linear(x, self.input_weight, self.bias)

    def forward_projected(
        self, projection: Float[Tensor, "m gates"], order: Order, index: Int64[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n H"]:
        """From input projections that exist already; position i reads row index[i], or row i without an index."""
        if kernels := kernels_for(projection, self.state_weight):
            return _native(kernels, self.cell, order, index, None, None, projection, None, self.state_weight, None)
        rows = torch.from_numpy(order.rows)
        packed = projection.index_select(0, rows if index is None else index.index_select(0, rows))
        h: Tensor = _Scan.apply(self.cell, order, packed, self.state_weight)  # type: ignore[no-untyped-call]
        return h.index_select(0, torch.from_numpy(order.inverse))


class LSTM(Recurrent):
    """The LSTM of equation 1; forget gates start open."""

    cell = LSTMCell
    blocks = 4

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__(input_size, hidden_size, generator=generator)
        with torch.no_grad():
            self.bias[hidden_size : 2 * hidden_size] = 1


class GRU(Recurrent):
    """h = h_prev + u * (n - h_prev)"""

    cell = GRUCell
    blocks = 3


def recurrent_layer(cell: CellName, input_size: int, hidden_size: int, generator: torch.Generator) -> Recurrent:
    """The layer with this cell."""
    kind = LSTM if cell == "lstm" else GRU
    return kind(input_size, hidden_size, generator=generator)


class Bidirectional(nn.Module):
    """Two recurrent layers over the same sequences, one from each end: [forward ; backward] states of every row."""

    def __init__(self, forward_layer: Recurrent, backward_layer: Recurrent) -> None:
        super().__init__()
        self.forward_layer = forward_layer
        self.backward_layer = backward_layer

    @property
    def hidden_size(self) -> int:
        return self.forward_layer.hidden_size + self.backward_layer.hidden_size

    def forward(
        self,
        x: Float[Tensor, "n D"],
        offsets: Int64[np.ndarray, " sequences_plus_1"],
        learned: LearnedRows | None = None,
    ) -> Float[Tensor, "n both_H"]:
        forward = self.forward_layer(x, Order(offsets), learned)
        backward = self.backward_layer(x, Order(offsets, reverse=True), learned)
        return torch.cat([forward, backward], dim=1)


# ------------------------------------------------------------------ in torch


class _Scan(torch.autograd.Function):
    """Packed projection (n, gates) -> packed h (n, H). The projection may be overwritten: callers pass a fresh one."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, order: Order, projection: Tensor, state_weight: Tensor) -> Tensor:
        gates = cell.opened(projection)
        states = tuple(gates.new_empty(len(gates), state_weight.shape[1]) for _ in range(cell.states))
        transposed = cell.to_gates(state_weight).t().contiguous()
        sizes = order.batch_sizes.tolist()
        before: States | None = None
        for gates_t, *now in zip(*(torch.split(tensor, sizes) for tensor in (gates, *states)), strict=True):
            if before is not None:
                before = tuple(state[: len(gates_t)] for state in before)
                cell.of_state(gates_t).addmm_(before[0], transposed)
            cell.activate_(gates_t, before, tuple(now))
            before = tuple(now)
        ctx.cell, ctx.order = cell, order
        ctx.save_for_backward(state_weight, gates, *states)
        return states[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> Gradients:
        state_weight, gates, *states = ctx.saved_tensors
        cell: Cell = ctx.cell
        sizes = ctx.order.batch_sizes.tolist()
        first = sum(sizes[:1])
        previous = torch.from_numpy(ctx.order.previous)
        before = tuple(
            torch.cat([torch.zeros_like(state[:first]), state.index_select(0, previous)]) for state in states
        )
        slopes, passed = cell.slopes(gates, tuple(states), before)
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
        return None, None, cell.of_input(slopes), cell.from_gates(d_weight)


# ------------------------------------------------------------------ on the native kernels


def _native(kernels: Kernels, cell: Cell, order: Order, *tensors: Tensor | None) -> Float[Tensor, "n H"]:
    keep = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    contiguous = (None if tensor is None else tensor.contiguous() for tensor in tensors)
    h: Tensor = _NativeScan.apply(kernels, cell, order, keep, *contiguous)  # type: ignore[no-untyped-call]
    return h


class _NativeScan(torch.autograd.Function):
    """Flat h (n, H), from x with an input weight, or from its projection without one."""

    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        cell: Cell,
        order: Order,
        keep: bool,
        index: Tensor | None,
        learned_rows: Tensor | None,
        _learned_vectors: Tensor | None,
        source: Tensor,
        input_weight: Tensor | None,
        state_weight: Tensor,
        bias: Tensor | None,
    ) -> Tensor:
        n, H = order.n_rows, state_weight.shape[1]
        if index is None and len(source) != n:
            raise IndexError(f"{len(source)} input rows for offsets that end at {n}")
        if index is not None:
            check_index(index, len(source))
            if len(index) != n:
                raise IndexError(f"{len(index)} row numbers for offsets that end at {n}")
        if input_weight is None:
            check_gates(source, state_weight)
            x, projection = None, source
        else:
            check_columns(source, input_weight)
            x, projection = source, None
        h = source.new_empty(n, H)
        gates = source.new_empty(n, 4 * H) if keep else None
        c = source.new_empty(n, H) if keep and cell.name == "lstm" else None
        kernels.call(
            "recurrent_forward", CELLS[cell.name], *order.native, H, source.shape[1], x, projection, index,
            input_weight, state_weight, bias, gates, c, h, torch.get_num_threads(),
        )  # fmt: skip
        if keep:
            ctx.kernels, ctx.cell, ctx.order, ctx.shape = kernels, cell, order, source.shape
            ctx.save_for_backward(index, learned_rows, x, input_weight, state_weight, gates, c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> Gradients:
        index, learned_rows, x, input_weight, state_weight, gates, c, h = ctx.saved_tensors
        kernels, cell, (n, H), D = ctx.kernels, ctx.cell, h.shape, 0 if x is None else x.shape[1]
        needs_source, *needs_weights = ctx.needs_input_grad[7:]
        rows = torch.arange(n) if x is None and needs_source else learned_rows  # whose projections get a gradient
        places = d_projection = None
        if rows is not None:
            check_index(rows, n)
            d_projection = h.new_empty(len(rows), 4 * H)
            places = torch.full((n,), -1).index_copy_(0, rows, torch.arange(len(rows)))
        d_weights = h.new_empty(4 * H, kernels.padded_columns(D + H + 1)) if any(needs_weights) else None
        d_source = torch.empty_like(x) if x is not None and needs_source else None
        kernels.call(
            "recurrent_backward", CELLS[cell.name], *ctx.order.native, H, D, x, input_weight, state_weight, gates, c,
            h, dh.contiguous(), d_weights, d_projection, places, d_source, torch.get_num_threads(),
        )  # fmt: skip
        d_learned = None
        if d_projection is not None:
            d_projection = cell.of_input(d_projection)
            if x is not None:
                d_learned = d_projection @ input_weight
            else:
                d_source = d_projection if index is None else h.new_zeros(ctx.shape).index_add_(0, index, d_projection)
        return *[None] * 6, d_learned, d_source, *_of_weights(cell, d_weights, D, H)


def _of_weights(cell: Cell, d_weights: Tensor | None, D: int, H: int) -> Gradients:
    """Of the layer's weights, from those of four blocks of gates: columns of x, of h and the bias. Without x, of the
    state's alone."""
    if d_weights is None:
        return None, None, None
    of_x, of_h, of_bias = (d_weights[:, columns].t() for columns in (slice(0, D), slice(D, D + H), [D + H]))
    d_state = cell.from_gates(cell.of_state(of_h).t().contiguous())
    if not D:
        return None, d_state, None
    return cell.of_input(of_x).t().contiguous(), d_state, cell.of_input(of_bias)[0].contiguous()
