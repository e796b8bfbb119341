"""LSTM and GRU on the native kernels, as autograd functions."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.cells import Cell
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.native.library import Kernels, RecurrentGradients
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
    cell: Cell,
    packing: Packing,
    projection: Float[Tensor, "m gates"],
    rows: Int64[Tensor, " n"] | None,
    state_weight: Float[Tensor, "gates H"],
) -> Float[Tensor, "n H"]:
    """The same from projections of its input; position i reads row rows[i], or row i."""
    tensors = [tensor.contiguous() for tensor in (projection, state_weight)]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    h: Tensor = _Projected.apply(kernels, cell, packing, keep, rows, *tensors)  # type: ignore[no-untyped-call]
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


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: Kernels,
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
