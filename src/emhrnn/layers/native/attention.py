"""Attention on the native kernels, as autograd functions."""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.native.library import Kernels


def attention_scores(
    kernels: Kernels,
    h: Float[Tensor, "n H"],
    weight: Float[Tensor, "A H"],
    bias: Float[Tensor, " A"],
    context: Float[Tensor, " A"],
) -> Float[Tensor, " n"]:
    """context . tanh(weight h + bias)"""
    tensors = [tensor.contiguous() for tensor in (h, weight, bias, context)]
    keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    scores: Tensor = _Scores.apply(kernels, keep, *tensors)  # type: ignore[no-untyped-call]
    return scores


def attend(
    kernels: Kernels, h: Float[Tensor, "n H"], scores: Float[Tensor, " n"], offsets: Int64[Tensor, " m_plus_1"]
) -> tuple[Float[Tensor, "m H"], Float[Tensor, " n"]]:
    """Pooled rows and weights of contiguous segments."""
    pooled, weights = _Attend.apply(  # type: ignore[no-untyped-call]
        kernels, h.contiguous(), scores.contiguous(), offsets.contiguous()
    )
    return pooled, weights


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernels: Kernels, keep: bool, h: Tensor, weight: Tensor, bias: Tensor, context: Tensor
    ) -> Tensor:
        scores, u = kernels.attention_scores(h, weight, bias, context, keep=keep)
        if keep:
            ctx.kernels = kernels
            ctx.save_for_backward(h, u, weight, context)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        h, u, weight, context = ctx.saved_tensors
        d_scores = d_scores.contiguous()
        needed = any(ctx.needs_input_grad[3:])
        d = ctx.kernels.attention_scores_backward(h, u, weight, context, d_scores, need_weights=needed)
        return None, None, *d, d_scores @ u if needed else None


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernels: Kernels, h: Tensor, scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        pooled, weights = kernels.attend(h, scores, offsets, None, keep=True)
        assert weights is not None
        ctx.kernels = kernels
        ctx.save_for_backward(h, weights, offsets)
        ctx.set_materialize_grads(False)
        return pooled, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_pooled: Tensor | None, d_weights: Tensor | None) -> tuple[Tensor | None, ...]:
        h, weights, offsets = ctx.saved_tensors
        if d_pooled is None and d_weights is None:
            return None, None, None, None
        d_pooled = h.new_zeros(len(offsets) - 1, h.shape[1]) if d_pooled is None else d_pooled.contiguous()
        d_weights = None if d_weights is None else d_weights.contiguous()
        return None, *ctx.kernels.attend_backward(h, weights, offsets, d_pooled, d_weights), None
