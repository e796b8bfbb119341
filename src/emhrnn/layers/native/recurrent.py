"""LSTM and GRU on the native kernels, as autograd functions."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.native.library import Cell, Kernels
from emhrnn.layers.packing import Packing


def recurrent(
    kernels: Kernels,
    cell: Cell,
    packing: Packing,
    x: Float[Tensor, "m D"] | None,
    projection: Float[Tensor, "m four_H"] | None,
    rows: Int64[Tensor, " n"] | None,
    input_weight: Float[Tensor, "gates D"] | None,
    state_weight: Float[Tensor, "gates H"],
    bias: Float[Tensor, " gates"] | None,
) -> Float[Tensor, "n H"]:
    """Flat states. The input is x with its weight and bias, or else a projection; position i reads its row rows[i]."""
    tensors = [
        None if tensor is None else tensor.contiguous() for tensor in (x, projection, input_weight, state_weight, bias)
    ]
    keep = torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)
    h: Tensor = _Recurrent.apply(kernels, cell, packing, rows, keep, *tensors)  # type: ignore[no-untyped-call]
    return h


class _Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        cell: Cell,
        packing: Packing,
        rows: Tensor | None,
        keep: bool,
        x: Tensor | None,
        projection: Tensor | None,
        input_weight: Tensor | None,
        state_weight: Tensor,
        bias: Tensor | None,
    ) -> Tensor:
        h, gates, c = kernels.recurrent_forward(
            cell, packing, x, projection, rows, input_weight, state_weight, bias, keep=keep
        )
        if keep:
            ctx.kernels, ctx.cell, ctx.packing = kernels, cell, packing
            ctx.x_shape, ctx.projection_shape = (None if tensor is None else tensor.shape for tensor in (x, projection))
            ctx.save_for_backward(x, rows, input_weight, state_weight, gates, c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        x, rows, input_weight, state_weight, gates, c, h = ctx.saved_tensors
        need_x, need_projection = ctx.needs_input_grad[5:7]
        d = ctx.kernels.recurrent_backward(
            ctx.cell, ctx.packing, x, rows, input_weight, state_weight, gates, c, h, dh.contiguous(),
            need_projection=need_projection, need_x=need_x,
        )  # fmt: skip
        dx, d_projection = (
            gradient if gradient is None or rows is None else gradient.new_zeros(shape).index_add_(0, rows, gradient)
            for gradient, shape in ((d.x, ctx.x_shape), (d.projection, ctx.projection_shape))
        )
        d_input, d_state, d_bias = d.input_weight, d.state_weight, d.bias
        if ctx.cell == "gru":  # the input feeds the blocks r u n, the state r u and U_n h
            H = h.shape[1]
            d_input, d_bias = d_input[: 3 * H], d_bias[: 3 * H]
            d_state = torch.cat([d_state[: 2 * H], d_state[3 * H :]])
        if x is None:
            return None, None, None, None, None, None, d_projection, None, d_state, None
        return None, None, None, None, None, dx, None, d_input, d_state, d_bias
