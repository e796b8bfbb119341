"""How much a sum over outputs of an LSTM changes with its inputs, and with the state that it goes on from, for every
row at once.

    h_1  ->  h_2  ->  h_3         the state behind row 1 is (h_1, c_1); its slope counts what it does to h_2, h_3, ...
     |        |        |          but not what h_1 itself does, which is dh_1
    dh_1     dh_2     dh_3

It is the backward scan, stopped at the states instead of the weights.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.layers.cell import cell_slopes
from emhrnn.layers.lstm import LSTM, scan, scan_backward
from emhrnn.layers.native import Kernels, kernels_for
from emhrnn.layers.packing import Packing


@dataclass(frozen=True, eq=False)
class LSTMPass:
    """What an LSTM made of its input, with all that its slopes need; gates and c in the order of the back end."""

    lstm: LSTM
    packing: Packing
    x: Float[Tensor, "n D"]
    h: Float[Tensor, "n H"]
    gates: Float[Tensor, "n four_H"]
    c: Float[Tensor, "n H"]
    kernels: Kernels | None

    @property
    def cells(self) -> Float[Tensor, "n H"]:
        """c in the order of the rows."""
        return self.c if self.kernels else self.c.index_select(0, self.packing.inverse)

    @torch.no_grad()
    def slopes(
        self, dh: Float[Tensor, "n H"]
    ) -> tuple[Float[Tensor, "n D"], Float[Tensor, "n H"], Float[Tensor, "n H"]]:
        """Gradients of the inputs, and those of `state_slopes`."""
        of_input, of_state = self.lstm.input_weight, self.lstm.state_weight
        if self.kernels:
            return self.kernels.slopes(
                self.packing, self.x, of_input.contiguous(), of_state.contiguous(), self.gates, self.c, self.h,
                dh.contiguous(),
            )  # fmt: skip
        h, d = (rows.index_select(0, self.packing.order) for rows in (self.h, dh))
        d_gates, _ = scan_backward(d, of_state, self.gates, self.c, h, self.packing)
        return (d_gates @ of_input).index_select(0, self.packing.inverse), *self.state_slopes(dh)

    @torch.no_grad()
    def state_slopes(self, dh: Float[Tensor, "n H"]) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n H"]]:
        """Gradients of the (h, c) that each row hands on, given the outputs' own gradients dh. The last row of a
        sequence hands nothing on: zeros."""
        weight = self.lstm.state_weight
        if self.kernels:
            return self.kernels.state_slopes(
                self.packing, weight.contiguous(), self.gates, self.c, self.h, dh.contiguous()
            )
        return _slopes(weight, self.gates, self.c, dh, self.packing)


@torch.no_grad()
def lstm_pass(lstm: LSTM, x: Float[Tensor, "n D"], packing: Packing) -> LSTMPass:
    """One run of the layer, without gradients of its own."""
    if kernels := kernels_for(x, lstm.state_weight):
        weights = (tensor.contiguous() for tensor in (lstm.input_weight, lstm.state_weight, lstm.bias))
        x = x.contiguous()
        h, gates, c = kernels.recurrent_forward("lstm", packing, x, None, None, *weights, keep=True)
        assert gates is not None
        assert c is not None
        return LSTMPass(lstm, packing, x, h, gates, c, kernels)
    gates = lstm.project(x).index_select(0, packing.order)
    h, c = scan(gates, lstm.state_weight, packing)
    return LSTMPass(lstm, packing, x, h.index_select(0, packing.inverse), gates, c, None)


def _slopes(
    state_weight: Float[Tensor, "four_H H"],
    gates: Float[Tensor, "n four_H"],
    c: Float[Tensor, "n H"],
    dh: Float[Tensor, "n H"],
    packing: Packing,
) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n H"]]:
    H = c.shape[1]
    dh = dh.index_select(0, packing.order)
    sizes = packing.batch_sizes.tolist()
    c_prev = torch.cat([torch.zeros_like(c[: sum(sizes[:1])]), c.index_select(0, packing.previous)])
    slopes, through_h = cell_slopes(gates, c, c_prev)
    d_h, d_c = torch.zeros_like(c), torch.zeros_like(c)
    begin = len(c)
    for step in range(len(sizes) - 1, 0, -1):
        end, begin = begin, begin - sizes[step]
        d_h_t = d_h[begin:end] + dh[begin:end]
        d_c_t = torch.addcmul(d_c[begin:end], through_h[begin:end], d_h_t)
        d_gates = slopes[begin:end]  # in place: a slope is used once
        d_gates[:, : 3 * H].view(-1, 3, H).mul_(d_c_t.unsqueeze(1))
        d_gates[:, 3 * H :].mul_(d_h_t)
        before = slice(begin - sizes[step - 1], begin - sizes[step - 1] + sizes[step])  # the same sequences
        torch.mm(d_gates, state_weight, out=d_h[before])
        torch.mul(d_c_t, gates[begin:end, H : 2 * H], out=d_c[before])
    return d_h.index_select(0, packing.inverse), d_c.index_select(0, packing.inverse)
