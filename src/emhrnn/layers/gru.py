"""The GRU of the HAN baselines over ragged sequences, with the same shape as the LSTM. Gates stand in the order r u n.

r, u = sigmoid(W x + U h_prev + b)      n = tanh(W x + b + r * (U h_prev))      h = h_prev + u * (n - h_prev)
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from emhrnn.layers.cell import gate_weights, tanh_
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.native import kernels_for
from emhrnn.layers.native.recurrent import recurrent
from emhrnn.layers.packing import Packing


class GRU(nn.Module):
    """Flat rows in, flat rows out; zero state at each sequence's start."""

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.input_weight, self.state_weight, self.bias = gate_weights(3, input_size, hidden_size, generator)

    @property
    def hidden_size(self) -> int:
        return self.state_weight.shape[1]

    def forward(
        self, x: Float[Tensor, "n D"], packing: Packing, learned: LearnedRows | None = None
    ) -> Float[Tensor, "n H"]:
        """`learned`: rows of a frozen x that have a gradient all the same."""
        weights = self.input_weight, self.state_weight, self.bias
        if kernels := kernels_for(x, self.state_weight):
            return recurrent(kernels, "gru", packing, x, learned, *weights)
        h: Tensor = _Scan.apply(x, *weights, packing, *(learned or (None, None)))  # type: ignore[no-untyped-call]
        return h


class _Scan(torch.autograd.Function):
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
        gates = torch.addmm(bias, x, input_weight.t())  # (n, 3H), activated in place
        n, H = x.shape[0], state_weight.shape[1]
        h = gates.new_empty(n, H)
        h_prev = gates.new_zeros(n, H)  # kept for the backward pass
        state_n = gates.new_zeros(n, H)  # U_n h_prev
        transposed = state_weight.t().contiguous()
        start = 0
        before = h[:0]
        for size in packing.batch_sizes.tolist():
            rows = slice(start, start + size)
            ru, candidate = gates[rows, : 2 * H], gates[rows, 2 * H :]
            if start:
                h_prev[rows] = before[:size]
                state = before[:size] @ transposed  # (size, 3H)
                ru.add_(state[:, : 2 * H])
                state_n[rows] = state[:, 2 * H :]
            ru.sigmoid_()
            if start:
                candidate.addcmul_(ru[:, :H], state_n[rows])
            tanh_(candidate)
            before = torch.lerp(h_prev[rows], candidate, ru[:, H:], out=h[rows])
            start += size
        ctx.packing = packing
        ctx.save_for_backward(x, input_weight, state_weight, gates, state_n, h_prev, learned_rows)
        return h.index_select(0, packing.inverse)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        x, input_weight, state_weight, gates, state_n, h_prev, learned_rows = ctx.saved_tensors
        packing: Packing = ctx.packing
        dh = dh.index_select(0, packing.order)
        H = state_weight.shape[1]
        r, u, n = gates.view(-1, 3, H).unbind(1)

        # Columns U_n h, r, u, n: the state sees the first three of them, the input the last three.
        slopes = gates.new_empty(len(gates), 4 * H)
        s_state, s_r, s_u, s_n = slopes.view(-1, 4, H).unbind(1)
        torch.addcmul(u, u, n * n, value=-1, out=s_n)
        torch.mul(s_n, r, out=s_state)
        torch.mul(s_n * state_n, torch.addcmul(r, r, r, value=-1), out=s_r)
        torch.mul(n - h_prev, torch.addcmul(u, u, u, value=-1), out=s_u)
        rolled = torch.cat([state_weight[2 * H :], state_weight[: 2 * H]])  # rows n r u

        keep = 1 - u
        sizes = packing.batch_sizes.tolist()
        d_h = torch.zeros_like(dh[: max(sizes, default=0)])  # from step t + 1, one row per sequence
        end = len(dh)
        for size in reversed(sizes):
            rows = slice(end - size, end)
            d_h_t = d_h[:size].add_(dh[rows])
            d_gates = slopes[rows]  # in place: a slope is used once
            d_gates.view(-1, 4, H).mul_(d_h_t.unsqueeze(1))
            d_h_t.mul_(keep[rows]).addmm_(d_gates[:, : 3 * H], rolled)
            end -= size

        d_input = slopes[:, H:]
        dx = (d_input @ input_weight).index_select(0, packing.inverse) if ctx.needs_input_grad[0] else None
        d_learned = None
        if learned_rows is not None:
            d_learned = d_input.index_select(0, packing.inverse.index_select(0, learned_rows)) @ input_weight
        d_rolled = slopes[:, : 3 * H].t() @ h_prev
        d_state_weight = torch.cat([d_rolled[H:], d_rolled[:H]])
        return dx, d_input.t() @ x, d_state_weight, d_input.sum(0), None, None, d_learned
