"""The LSTM of equation 1 over ragged sequences: flat rows in, flat rows out.

The input projection of all words is one matrix product and so is each weight gradient; only the recurrence goes step
by step, in packed order. The backward pass is written by hand: what does not depend on the step is computed for all
rows at once, so that a backward step is one matrix product and five light operations.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from emhrnn.layers.cell import cell_, cell_slopes, gate_weights
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.linear import linear
from emhrnn.layers.native import kernels_for
from emhrnn.layers.native.recurrent import recurrent, recurrent_projected
from emhrnn.layers.packing import Packing


class LSTM(nn.Module):
    """h_t, c_t = cell(input_weight x_t + state_weight h_(t-1) + bias, c_(t-1)), zero state at each sequence's start."""

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.input_weight, self.state_weight, self.bias = gate_weights(4, input_size, hidden_size, generator)
        with torch.no_grad():
            self.bias[hidden_size : 2 * hidden_size] = 1  # forget gates start open

    @property
    def hidden_size(self) -> int:
        return self.state_weight.shape[1]

    def forward(
        self, x: Float[Tensor, "n D"], packing: Packing, learned: LearnedRows | None = None
    ) -> Float[Tensor, "n H"]:
        """`learned`: rows of a frozen x that have a gradient all the same."""
        weights = self.input_weight, self.state_weight, self.bias
        if kernels := kernels_for(x, self.state_weight):
            return recurrent(kernels, "lstm", packing, x, learned, *weights)
        h: Tensor = _InputScan.apply(x, *weights, packing, *(learned or (None, None)))  # type: ignore[no-untyped-call]
        return h

    def project(self, x: Float[Tensor, "m D"]) -> Float[Tensor, "m four_H"]:
        """The input's part of the gates; over a whole vocabulary, it is a table for `forward_projected`."""
        return linear(x, self.input_weight, self.bias)

    def forward_projected(
        self, projection: Float[Tensor, "m four_H"], packing: Packing, index: Int64[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n H"]:
        """From input projections that exist already; position i reads row index[i], or row i without an index."""
        if kernels := kernels_for(projection, self.state_weight):
            return recurrent_projected(kernels, packing, projection, index, self.state_weight)
        rows = packing.order if index is None else index.index_select(0, packing.order)
        packed = projection.index_select(0, rows)
        h: Tensor = _Scan.apply(packed, self.state_weight, packing)  # type: ignore[no-untyped-call]
        return h.index_select(0, packing.inverse)


class _InputScan(torch.autograd.Function):
    """Flat x (n, D) -> flat h (n, H)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        input_weight: Tensor,
        state_weight: Tensor,
        bias: Tensor,
        packing: Packing,
        learned_rows: Tensor | None,
        _learned_vectors: Tensor | None,
    ) -> Tensor:
        x = x.index_select(0, packing.order)  # (n, D) packed
        gates = torch.addmm(bias, x, input_weight.t())  # (n, 4H)
        h, c = scan(gates, state_weight, packing)
        ctx.packing = packing
        ctx.save_for_backward(x, input_weight, state_weight, gates, c, h, learned_rows)
        return h.index_select(0, packing.inverse)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        x, input_weight, state_weight, gates, c, h, learned_rows = ctx.saved_tensors
        packing: Packing = ctx.packing
        dh = dh.index_select(0, packing.order)
        d_gates, d_state_weight = scan_backward(dh, state_weight, gates, c, h, packing)
        dx = (d_gates @ input_weight).index_select(0, packing.inverse) if ctx.needs_input_grad[0] else None
        d_learned = None
        if learned_rows is not None:
            d_learned = d_gates.index_select(0, packing.inverse.index_select(0, learned_rows)) @ input_weight
        return dx, d_gates.t() @ x, d_state_weight, d_gates.sum(0), None, None, d_learned


class _Scan(torch.autograd.Function):
    """Packed projection (n, 4H) -> packed h (n, H). The projection is overwritten: callers pass a fresh tensor."""

    @staticmethod
    def forward(ctx: Any, projection: Tensor, state_weight: Tensor, packing: Packing) -> Tensor:
        h, c = scan(projection, state_weight, packing)
        ctx.packing = packing
        ctx.save_for_backward(state_weight, projection, c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        state_weight, gates, c, h = ctx.saved_tensors
        return *scan_backward(dh, state_weight, gates, c, h, ctx.packing), None


def scan(
    gates: Float[Tensor, "n four_H"], state_weight: Float[Tensor, "four_H H"], packing: Packing
) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n H"]]:
    """Runs the recurrence in packed order; `gates` come in as projections and leave activated."""
    n, H = gates.shape[0], state_weight.shape[1]
    h, c = gates.new_empty(n, H), gates.new_empty(n, H)
    transposed = state_weight.t().contiguous()
    sizes = packing.batch_sizes.tolist()
    h_prev = c_prev = None
    for gates_t, h_t, c_t in zip(*(torch.split(tensor, sizes) for tensor in (gates, h, c)), strict=True):
        if h_prev is not None and c_prev is not None:
            h_prev, c_prev = h_prev[: len(h_t)], c_prev[: len(h_t)]
            gates_t.addmm_(h_prev, transposed)
        cell_(gates_t, c_prev, c_t, h_t)
        h_prev, c_prev = h_t, c_t
    return h, c


def scan_backward(
    dh: Float[Tensor, "n H"],
    state_weight: Float[Tensor, "four_H H"],
    gates: Float[Tensor, "n four_H"],
    c: Float[Tensor, "n H"],
    h: Float[Tensor, "n H"],
    packing: Packing,
) -> tuple[Float[Tensor, "n four_H"], Float[Tensor, "four_H H"]]:
    """Gradients of the gates before activation and of the state weight."""
    H = c.shape[1]
    first = int(packing.batch_sizes[0]) if len(packing.batch_sizes) else 0
    c_prev = torch.cat([torch.zeros_like(c[:first]), c.index_select(0, packing.previous)])
    slopes, through_h = cell_slopes(gates, c, c_prev)
    forget = gates[:, H : 2 * H]
    sizes = packing.batch_sizes.tolist()
    d_h, d_c = torch.zeros_like(c[:first]), torch.zeros_like(c[:first])  # from step t + 1, one row per sequence
    end = len(c)
    for size in reversed(sizes):
        rows = slice(end - size, end)
        d_h_t, d_c_t = d_h[:size].add_(dh[rows]), d_c[:size]
        d_c_t.addcmul_(through_h[rows], d_h_t)
        d_gates = slopes[rows]  # in place: a slope is used once
        d_gates[:, : 3 * H].view(-1, 3, H).mul_(d_c_t.unsqueeze(1))
        d_gates[:, 3 * H :].mul_(d_h_t)
        d_c_t.mul_(forget[rows])
        torch.mm(d_gates, state_weight, out=d_h_t)
        end -= size
    return slopes, slopes[first:].t() @ h.index_select(0, packing.previous)
