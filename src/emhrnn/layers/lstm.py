"""The LSTM of equation 1 over ragged sequences: flat rows in, flat rows out. Gates stand in the order i f g o."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from emhrnn.layers import scan
from emhrnn.layers.cells import LSTMCell, gate_weights
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.linear import linear
from emhrnn.layers.packing import Packing


class LSTM(nn.Module):
    """h_t, c_t = cell(input_weight x_t + state_weight h_(t-1) + bias, c_(t-1)), zero state at each sequence's start."""

    cell = LSTMCell

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.input_weight, self.state_weight, self.bias = gate_weights(4, input_size, hidden_size, generator)
        with torch.no_grad():
            self.bias[hidden_size : 2 * hidden_size] = 1  # forget gates start open

    @property
    def hidden_size(self) -> int:
        return self.state_weight.shape[1]

    def forward(
        self, x: Float[Tensor, "n D"], packing: Packing, learned: LearnedRows | None = None
    ) -> Float[Tensor, "n H"]:
        """`learned`: rows of a frozen x that have a gradient all the same."""
        return scan.run(self.cell, x, packing, learned, self.input_weight, self.state_weight, self.bias)

    def project(self, x: Float[Tensor, "m D"]) -> Float[Tensor, "m four_H"]:
        """The input's part of the gates; over a whole vocabulary, it is a table for `forward_projected`."""
        return linear(x, self.input_weight, self.bias)

    def forward_projected(
        self, projection: Float[Tensor, "m four_H"], packing: Packing, index: Int64[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n H"]:
        """From input projections that exist already; position i reads row index[i], or row i without an index."""
        return scan.run_projected(self.cell, projection, packing, index, self.state_weight)
