"""The layers of models/multiscale_lstm.py on the native kernels, as an autograd function."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.native.torch_kernels import TorchKernels, check_gates, sequences
from emhrnn.layers.packing import Packing


def multiscale(
    kernels: TorchKernels,
    packing: Packing,
    projection: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    forced: Bool[Tensor, " n"] | None,
    *,
    size: int,
    flush_own: bool,
) -> tuple[Float[Tensor, "n layers H"], Float[Tensor, "n detectors"]]:
    """States of all layers, and the inputs of their detectors, which have no gradient."""
    if len(projection) != packing.rows or (forced is not None and len(forced) != packing.rows):
        raise IndexError(f"{len(projection)} input rows for offsets that end at {packing.rows}")
    check_gates(projection, weights[0])
    forced = None if forced is None else forced.contiguous()
    h, x_z = _Multiscale.apply(  # type: ignore[no-untyped-call]
        kernels, packing, size, flush_own, forced, slope, len(weights), projection.contiguous(), *weights, *biases
    )
    return h, x_z


class _Multiscale(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        kernels: TorchKernels,
        packing: Packing,
        H: int,
        flush_own: bool,
        forced: Tensor | None,
        slope: Tensor,
        layers: int,
        projection: Tensor,
        *parameters: Tensor,
    ) -> tuple[Tensor, Tensor]:
        n = len(projection)
        weights = torch.cat([weight.flatten() for weight in parameters[:layers]])
        gates, c, h = (projection.new_empty(n, layers, columns) for columns in (4 * H + 1, H, H))
        kernels.call(
            "multiscale_forward", *sequences(packing)[:3], layers, H, int(flush_own), projection, weights,
            torch.cat(parameters[layers:]), forced, gates, c, h, torch.get_num_threads(),
        )  # fmt: skip
        ctx.kernels, ctx.packing, ctx.sizes = kernels, packing, (layers, H, int(flush_own))
        ctx.shapes = [weight.shape for weight in parameters[:layers]]
        ctx.save_for_backward(slope, weights, forced, gates, c, h)
        x_z = gates[:, :-1, 4 * H].clone()
        ctx.mark_non_differentiable(x_z)
        return h, x_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        slope, weights, forced, gates, c, h = ctx.saved_tensors
        padded = [(rows, ctx.kernels.padded_columns(columns + 1)) for rows, columns in ctx.shapes]
        d_projection = h.new_empty(len(h), ctx.shapes[0][0])
        d_weights = h.new_empty(sum(rows * columns for rows, columns in padded))
        ctx.kernels.call(
            "multiscale_backward", *sequences(ctx.packing)[:3], *ctx.sizes, weights, forced, gates, c, h, slope,
            dh.contiguous(), d_projection, d_weights, torch.get_num_threads(),
        )  # fmt: skip
        by_layer = d_weights.split([rows * columns for rows, columns in padded])
        by_layer = [part.view(shape) for part, shape in zip(by_layer, padded, strict=True)]
        d_w = [part[:, :columns] for part, (_, columns) in zip(by_layer, ctx.shapes, strict=True)]
        d_b = [part[:, columns] for part, (_, columns) in zip(by_layer[1:], ctx.shapes[1:], strict=True)]
        return *[None] * 7, d_projection, *d_w, *d_b
