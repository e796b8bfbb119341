r"""LSTM layers that tell each other when to run: the HM-LSTM of Chung, Ahn and Bengio (ICLR 2017; SPEC 3), step by step
over the words and all sequences of a batch at once.

    h3  ------------------ h3 ------     top: COPY until the layer below ends a unit, then UPDATE
             z2 = 0       z2 = 1
    h2  ----- h2 --------- h2 ------     UPDATE at an end below, COPY elsewhere, FLUSH after its own end
       z1 = 1    z1 = 0   z1 = 1
    h1 -- h1 -- h1 -- h1 -- h1 -----     bottom: UPDATE at every word, FLUSH after its own end

With a = z^l_(t-1), the layer's own end before, and b = z^(l-1)_t, the end below now (bottom: b = 1; top: a = 0):

    gates i f g o and x_z = state_weight h^l_(t-1) + a above_weight h^(l+1)_(t-1) + b below_weight h^(l-1)_t + bias
    c = (1-a)(1-b) c_prev  +  (1-a) b (f c_prev)  +  (1 - (1-a)(1-b)) i g         COPY + UPDATE + both UPDATE and FLUSH
    h = (1-a)(1-b) h_prev  +  (1 - (1-a)(1-b)) o tanh(c)
    z = 1[x_z > 0]                                                               straight-through, see boundary.py

The terms with a and b are products, so the formulas are differentiable in them; these are the gradients that the
detectors get. The backward pass is by hand: what does not depend on the step is computed for all rows at once, and a
step of a layer is one matrix product and a dozen light operations. The native kernels do the same (multiscale.h).
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.native import kernels_for
from emhrnn.layers.native.multiscale import multiscale
from emhrnn.layers.packing import Packing
from emhrnn.paper.models.multiscale_backward import Carried, Slopes, backward_scan, stretches
from emhrnn.paper.models.multiscale_forward import forward_scan
from emhrnn.paper.models.multiscale_wiring import Wiring


def multiscale_states(
    projection: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    packing: Packing,
    wiring: Wiring,
    forced: Bool[Tensor, " n"] | None = None,
) -> tuple[Float[Tensor, "n layers H"], Float[Tensor, "n detectors"]]:
    """States h of every layer and detector inputs x_z of every layer but the top, in flat order.

    `projection` is the bottom layer's input term with its bias; weights[l] (gates, sources * H) reads the sources of
    layer l; biases are those of the layers above the bottom. Where `forced`, z of the bottom layer is 1 whatever its
    detector says, and the detector gets no gradient.
    """
    if kernels := kernels_for(projection, *weights, slope):
        return multiscale(
            kernels, packing, projection, weights, biases, slope, forced, size=wiring.size, flush_own=wiring.flush_own
        )
    forced_rows = None if forced is None else forced.index_select(0, packing.order)
    outputs = _Scan.apply(  # type: ignore[no-untyped-call]
        projection.index_select(0, packing.order), slope, packing, wiring, forced_rows, *weights, *biases
    )
    flat = [output.index_select(0, packing.inverse) for output in outputs]
    return torch.stack(flat[: wiring.layers], dim=1), torch.cat(flat[wiring.layers :], dim=1)


class _Scan(torch.autograd.Function):
    """Packed rows. The projection is overwritten: callers pass a fresh tensor."""

    @staticmethod
    def forward(
        ctx: Any,
        projection: Tensor,
        slope: Tensor,
        packing: Packing,
        wiring: Wiring,
        forced: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        L, H = wiring.layers, wiring.size
        n = len(projection)
        weights, biases = parameters[:L], parameters[L:]
        gates = [projection, *(bias.repeat(n, 1) for bias in biases)]
        inputs = [projection.new_empty(n, weight.shape[1]) for weight in weights]
        h = [projection.new_empty(n, H) for _ in range(L)]
        c = [projection.new_empty(n, H) for _ in range(L)]
        z = [projection.new_empty(n, 1) for _ in range(L - 1)]
        forward_scan(wiring, packing, weights, gates, inputs, h, c, z, forced)
        ctx.packing, ctx.wiring, ctx.forced = packing, wiring, forced
        ctx.save_for_backward(slope, *weights, *gates, *inputs, *h, *c, *z)
        x_z = [gates[l][:, 4 * H :].clone() for l in range(L - 1)]
        ctx.mark_non_differentiable(*x_z)
        return *h, *x_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        wiring, packing = ctx.wiring, ctx.packing
        L = wiring.layers
        slope, *saved = ctx.saved_tensors
        weights, gates, inputs, h, c = (saved[k * L : (k + 1) * L] for k in range(5))
        z = saved[5 * L :]
        d_projection = torch.empty_like(gates[0])
        d_weights = [torch.zeros_like(weight) for weight in weights]
        d_biases = [torch.zeros_like(weight[:, 0]) for weight in weights]
        carried = Carried.zeros(int(packing.batch_sizes[0]), weights, wiring)
        for stretch in reversed(stretches(packing)):
            layers = [Slopes.of(l, wiring, stretch, gates, h, c, z, slope, ctx.forced) for l in range(L)]
            backward_scan(wiring, stretch, weights, layers, gradients, carried)
            d_projection[stretch.rows] = layers[0].slopes
            for l, layer in enumerate(layers):
                d_weights[l].addmm_(layer.slopes.t(), inputs[l][stretch.rows])
                d_biases[l].add_(layer.slopes.sum(0))
        return d_projection, None, None, None, None, *d_weights, *d_biases[1:]
