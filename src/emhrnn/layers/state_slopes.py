"""How much a sum over outputs of a recurrent layer changes with its inputs, and with the states that it goes on from,
for every row at once.

    h_1  ->  h_2  ->  h_3         the state behind row 1 is (h_1, c_1), (h_1,) of a GRU; its slope counts what it does
     |        |        |          to h_2, h_3, ..., but not what h_1 itself does, which is dh_1
    dh_1     dh_2     dh_3

It is the backward scan, stopped at the states instead of the weights.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.layers.cells import States
from emhrnn.layers.native import Kernels, kernels_for
from emhrnn.layers.packing import Packing
from emhrnn.layers.recurrent import Recurrent
from emhrnn.layers.scan import scan, scan_backward


@dataclass(frozen=True, eq=False)
class Pass:
    """What a layer made of its input, with all that its slopes need."""

    layer: Recurrent
    packing: Packing
    x: Float[Tensor, "n D"]
    h: Float[Tensor, "n H"]
    gates: Float[Tensor, "n four_H"]  # in the order of the back end, as is c
    c: Float[Tensor, "n H"] | None  # of an LSTM
    kernels: Kernels | None

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
def layer_pass(layer: Recurrent, x: Float[Tensor, "n D"], packing: Packing) -> Pass:
    """One run of the layer, without gradients of its own."""
    if kernels := kernels_for(x, layer.state_weight):
        weights = (tensor.contiguous() for tensor in (layer.input_weight, layer.state_weight, layer.bias))
        x = x.contiguous()
        h, gates, c = kernels.recurrent_forward(layer.cell.name, packing, x, None, None, *weights, keep=True)
        assert gates is not None
        return Pass(layer, packing, x, h, gates, c, kernels)
    projection = layer.project(x).index_select(0, packing.order)
    gates, (h, *memory) = scan(layer.cell, projection, layer.state_weight, packing)
    c = memory[0] if memory else None
    return Pass(layer, packing, x, h.index_select(0, packing.inverse), gates, c, None)
