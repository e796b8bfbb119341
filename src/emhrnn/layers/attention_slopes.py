"""An attention pool that can tell how much a sum over its outputs changes with its rows.

It is the backward pass of `AttentionPool` without autograd, which for one document takes longer than the sums.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers.attention import AttentionPool, attend
from emhrnn.layers.native import Kernels, kernels_for


@dataclass(frozen=True, eq=False)
class AttentionPass:
    """What a pool made of its rows, with all that its slopes need."""

    pool: AttentionPool
    h: Float[Tensor, "n H"]
    offsets: Int64[Tensor, " m_plus_1"]
    pooled: Float[Tensor, "m H"]
    weights: Float[Tensor, " n"]
    u: Float[Tensor, "n A"] | None  # the native kernels' tanh
    kernels: Kernels | None

    @torch.no_grad()
    def slopes(self, d_pooled: Float[Tensor, "m H"]) -> Float[Tensor, "n H"]:
        """Gradients of the rows, given those of the pooled ones."""
        if self.kernels and self.u is not None:
            dh, d_scores = self.kernels.attend_backward(self.h, self.weights, self.offsets, d_pooled.contiguous(), None)
            weight, context = self.pool.weight.contiguous(), self.pool.context.contiguous()
            through_scores, _, _ = self.kernels.attention_scores_backward(
                self.h, self.u, weight, context, d_scores, need_weights=False
            )
            return dh.add_(through_scores)
        h = self.h.detach().requires_grad_()
        with torch.enable_grad():
            pooled, _ = self.pool(h, self.offsets)
        (slopes,) = torch.autograd.grad(pooled, h, d_pooled)
        return slopes


@torch.no_grad()
def attention_pass(pool: AttentionPool, h: Float[Tensor, "n H"], offsets: Int64[Tensor, " m_plus_1"]) -> AttentionPass:
    """One run of the pool, without gradients of its own."""
    if kernels := kernels_for(h, pool.weight):
        h = h.contiguous()
        weights_of_pool = (tensor.contiguous() for tensor in (pool.weight, pool.bias, pool.context))
        scores, u = kernels.attention_scores(h, *weights_of_pool, keep=True)
        pooled, weights = kernels.attend(h, scores, offsets.contiguous(), None, keep=True)
        assert weights is not None
        return AttentionPass(pool, h, offsets.contiguous(), pooled, weights, u, kernels)
    pooled, weights = attend(h, pool.scores(h), offsets)
    return AttentionPass(pool, h, offsets, pooled, weights, None, None)
