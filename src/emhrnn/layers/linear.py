"""Linear layers: for many rows and few columns, where the usual matrix products of a CPU are at their worst, and with
first weights from an explicit generator."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from emhrnn.layers.native.library import Kernels
from emhrnn.layers.native.torch_kernels import check_columns, kernels_for
from emhrnn.shapes import Float


def linear(
    x: Float[Tensor, "n D"], weight: Float[Tensor, "columns D"], bias: Float[Tensor, " columns"] | None = None
) -> Float[Tensor, "n columns"]:
    """x weight^T + bias"""
    if kernels := kernels_for(x, weight):
        y: Tensor = _Linear.apply(kernels, x, weight, bias)  # type: ignore[no-untyped-call]
        return y
    return nn.functional.linear(x, weight, bias)


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernels: Kernels, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        check_columns(x, weight)
        x, weight, y = x.contiguous(), weight.contiguous(), x.new_empty(len(x), len(weight))
        kernels.call("linear", *x.shape, len(weight), x, weight, bias, y, torch.get_num_threads())
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[1:]
        dx = dy @ weight if needs_x else None
        d_weight = dy.t() @ x if needs_weight else None
        return None, dx, d_weight, dy.sum(0) if needs_bias else None


def dense(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """A fully connected layer: uniform weights within 1 / sqrt(inputs), zero bias."""
    layer = _Undrawn(inputs, outputs)
    bound = inputs**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer


class _Undrawn(nn.Linear):
    # `nn.utils.skip_init` would do the same, but loads sympy: 35 MB and half a second in every process.
    def reset_parameters(self) -> None:
        """Nothing: torch would draw from its global generator."""
