"""LSTM and GRU on the native kernels, as autograd functions."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.native.library import Cell, Kernels
from emhrnn.layers.packing import Packing


def recurrent(
    kernels: Kernels,
    cell: Cell,
    packing: Packing,
    x: Float[Tensor, "n D"],
    learned: LearnedRows | None,
    input_weight: Float[Tensor, "gates D"],
    state_weight: Float[Tensor, "gates H"],
    bias: Float[Tensor, " gates"],
) -> Float[Tensor, "n H"]:
    """Flat x -> flat h."""
    tensors = [tensor.contiguous() for tensor in (x, input_weight, state_weight, bias)]
    rows, vectors = learned or (None, None)
    keep = torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (*tensors, vectors)
    )
    h: Tensor = _Recurrent.apply(kernels, cell, packing, keep, rows, vectors, *tensors)  # type: ignore[no-untyped-call]
    return h


def recurrent_projected(
    kernels: Kernels,
    packing: Packing,
    projection: Float[Tensor, "m four_H"],
    rows: Int64[Tensor, " n"] | None,
    state_weight: Float[Tensor, "four_H H"],
) -> Float[Tensor, "n H"]:
    """An LSTM from projections of its input; position i reads row rows[i], or row i."""
    tensors = [tensor.contiguous() for tensor in (projection, state_weight)]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    h: Tensor = _Projected.apply(kernels, packing, keep, rows, *tensors)  # type: ignore[no-untyped-call]
    return h


class _Recurrent(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
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
            cell, packing, x, None, None, input_weight, state_weight, bias, keep=keep
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
            ctx.cell, ctx.packing, x, input_weight, state_weight, gates, c, h, dh.contiguous(),
            projection_rows=learned_rows, need_x=ctx.needs_input_grad[6], need_weights=any(ctx.needs_input_grad[7:]),
        )  # fmt: skip
        d_input, d_state, d_bias, d_projection = d.input_weight, d.state_weight, d.bias, d.projection
        if ctx.cell == "gru":  # the input feeds the blocks r u n, the state r u and U_n h
            inputs = 3 * h.shape[1]
            states = 2 * h.shape[1]
            if d_input is not None and d_state is not None and d_bias is not None:
                d_input, d_bias = d_input[:inputs], d_bias[:inputs]
                d_state = torch.cat([d_state[:states], d_state[inputs:]])
            d_projection = None if d_projection is None else d_projection[:, :inputs]
        d_learned = None if d_projection is None else d_projection @ input_weight
        return None, None, None, None, None, d_learned, d.x, d_input, d_state, d_bias


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
        packing: Packing,
        keep: bool,
        rows: Tensor | None,
        projection: Tensor,
        state_weight: Tensor,
    ) -> Tensor:
        h, gates, c = kernels.recurrent_forward(
            "lstm", packing, None, projection, rows, None, state_weight, None, keep=keep
        )
        if keep:
            ctx.kernels, ctx.packing, ctx.shape = kernels, packing, projection.shape
            ctx.save_for_backward(rows, state_weight, gates, c, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        rows, state_weight, gates, c, h = ctx.saved_tensors
        everything = torch.arange(len(h)) if ctx.needs_input_grad[4] else None
        d = ctx.kernels.recurrent_backward(
            "lstm", ctx.packing, None, None, state_weight, gates, c, h, dh.contiguous(),
            projection_rows=everything, need_x=False, need_weights=ctx.needs_input_grad[5],
        )  # fmt: skip
        d_projection = d.projection
        if d_projection is not None and rows is not None:
            d_projection = d_projection.new_zeros(ctx.shape).index_add_(0, rows, d_projection)
        return None, None, None, None, d_projection, d.state_weight
