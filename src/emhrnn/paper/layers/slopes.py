"""How much a sum over outputs of a recurrent layer changes with its inputs, and with the states that it goes on from,
for every row at once.

    h_1  ->  h_2  ->  h_3         the state behind row 1 is (h_1, c_1), (h_1,) of a GRU; its slope counts what it does
     |        |        |          to h_2, h_3, ..., but not what h_1 itself does, which is dh_1
    dh_1     dh_2     dh_3

It is the backward scan, stopped at the states instead of the weights. The same of an attention pool: its backward pass
without autograd, which for one document takes longer than the sums. `Passes` runs the layers of a model and keeps both.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers.cells import States
from emhrnn.layers.native.torch_kernels import TorchKernels, kernels_for
from emhrnn.layers.packing import Packing
from emhrnn.layers.recurrent import Recurrent
from emhrnn.layers.scan import scan, scan_backward
from emhrnn.paper.layers.attention import AttentionPool, attend


@dataclass(frozen=True, eq=False)
class LayerPass:
    """What a layer made of its input, with all that its slopes need."""

    layer: Recurrent
    packing: Packing
    x: Float[Tensor, "n D"]
    h: Float[Tensor, "n H"]
    gates: Float[Tensor, "n four_H"]  # in the order of the back end, as is c
    c: Float[Tensor, "n H"] | None  # of an LSTM
    kernels: TorchKernels | None

    @property
    def states(self) -> States:
        """h, and c of an LSTM, in the order of the rows; without gradients."""
        h = self.h.detach()
        if self.c is None:
            return (h,)
        return h, self.c if self.kernels else self.c.index_select(0, self.packing.inverse)

    @torch.no_grad()
    def slopes(self, dh: Float[Tensor, "n H"]) -> tuple[Tensor, ...]:
        """Gradients of the inputs (n, D), and those of `state_slopes`."""
        of_input, of_state = self.layer.input_weight, self.layer.state_weight
        if self.kernels:
            return self.kernels.slopes(
                self.layer.cell.name, self.packing, self.x, of_input.contiguous(), of_state.contiguous(), self.gates,
                self.c, self.h, dh.contiguous(),
            )  # fmt: skip
        d_gates, slopes = self._scan_backward(dh)
        return (self.layer.cell.of_input(d_gates) @ of_input).index_select(0, self.packing.inverse), *slopes

    @torch.no_grad()
    def state_slopes(self, dh: Float[Tensor, "n H"]) -> States:
        """Gradients of the states that each row hands on, given the outputs' own gradients dh. The last row of a
        sequence hands nothing on: zeros."""
        if self.kernels:
            return self.kernels.state_slopes(
                self.layer.cell.name, self.packing, self.layer.state_weight.contiguous(), self.gates, self.c, self.h,
                dh.contiguous(),
            )  # fmt: skip
        return self._scan_backward(dh)[1]

    def _scan_backward(self, dh: Float[Tensor, "n H"]) -> tuple[Float[Tensor, "n four_H"], States]:
        """Gradients of the gates, in packed order, and of the states that the rows hand on."""
        h, d = (rows.detach().index_select(0, self.packing.order) for rows in (self.h, dh))
        states = (h,) if self.c is None else (h, self.c)
        behind = tuple(torch.empty_like(h) for _ in states)
        weight = self.layer.state_weight
        d_gates, _ = scan_backward(self.layer.cell, d, weight, self.gates, states, self.packing, behind)
        return d_gates, tuple(slope.index_select(0, self.packing.inverse) for slope in behind)


@torch.no_grad()
def layer_pass(layer: Recurrent, x: Float[Tensor, "n D"], packing: Packing) -> LayerPass:
    """One run of the layer, without gradients of its own."""
    if kernels := kernels_for(x, layer.state_weight):
        weights = (tensor.contiguous() for tensor in (layer.input_weight, layer.state_weight, layer.bias))
        x = x.contiguous()
        h, gates, c = kernels.recurrent_forward(layer.cell.name, packing, x, None, None, *weights, keep=True)
        assert gates is not None
        return LayerPass(layer, packing, x, h, gates, c, kernels)
    projection = layer.project(x).index_select(0, packing.order)
    gates, (h, *memory) = scan(layer.cell, projection, layer.state_weight, packing)
    c = memory[0] if memory else None
    return LayerPass(layer, packing, x, h.index_select(0, packing.inverse), gates, c, None)


@dataclass(frozen=True, eq=False)
class AttentionPass:
    """What a pool made of its rows, with all that its slopes need."""

    pool: AttentionPool
    h: Float[Tensor, "n H"]
    offsets: Int64[Tensor, " m_plus_1"]
    pooled: Float[Tensor, "m H"]
    weights: Float[Tensor, " n"]
    u: Float[Tensor, "n A"] | None  # the native kernels' tanh
    kernels: TorchKernels | None

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


@dataclass(frozen=True, eq=False)
class Passes:
    """Runs layers and pools without gradients, and keeps their passes in the order in which they were run."""

    layers: list[LayerPass] = field(default_factory=list)
    pools: list[AttentionPass] = field(default_factory=list)

    def layer(self, layer: Recurrent, x: Float[Tensor, "n D"], packing: Packing) -> Float[Tensor, "n H"]:
        """h, as `layer(x, packing)`."""
        self.layers.append(layer_pass(layer, x, packing))
        return self.layers[-1].h

    def pool(
        self, pool: AttentionPool, h: Float[Tensor, "n H"], offsets: Int64[Tensor, " m_plus_1"]
    ) -> tuple[Float[Tensor, "m H"], Float[Tensor, " n"]]:
        """Pooled rows and weights, as `pool(h, offsets)`."""
        self.pools.append(attention_pass(pool, h, offsets))
        return self.pools[-1].pooled, self.pools[-1].weights
