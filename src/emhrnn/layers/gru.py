"""The GRU over ragged sequences, with the same shape as the LSTM. The weights' rows stand in the order r u n.

r, u = sigmoid(W x + U h_prev + b)      n = tanh(W x + b + r * (U h_prev))      h = h_prev + u * (n - h_prev)
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from emhrnn.layers import scan
from emhrnn.layers.cells import GRUCell, gate_weights
from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.linear import linear
from emhrnn.layers.packing import Packing


class GRU(nn.Module):
    """Flat rows in, flat rows out; zero state at each sequence's start."""

    cell = GRUCell

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        self.input_weight, self.state_weight, self.bias = gate_weights(3, input_size, hidden_size, generator)

    @property
    def hidden_size(self) -> int:
        return self.state_weight.shape[1]

    def forward(
        self, x: Float[Tensor, "n D"], packing: Packing, learned: LearnedRows | None = None
    ) -> Float[Tensor, "n H"]:
        """`learned`: rows of a frozen x that have a gradient all the same."""
        return scan.run(self.cell, x, packing, learned, self.input_weight, self.state_weight, self.bias)

    def project(self, x: Float[Tensor, "m D"]) -> Float[Tensor, "m three_H"]:
        """The input's part of the gates, W x + b; over a whole vocabulary, it is a table for `forward_projected`."""
        return linear(x, self.input_weight, self.bias)

    def forward_projected(
        self, projection: Float[Tensor, "m three_H"], packing: Packing, index: Int64[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n H"]:
        """From input projections that exist already; position i reads row index[i], or row i without an index."""
        return scan.run_projected(self.cell, projection, packing, index, self.state_weight)
