"""LSTM and GRU over ragged sequences: flat rows in, flat rows out, zero state at each sequence's start.

cells.py has the equations; the rows of the weights stand in the order i f g o of an LSTM, r u n of a GRU.
"""

from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from emhrnn.layers import scan
from emhrnn.layers.cells import Cell, GRUCell, LSTMCell, gate_weights
from emhrnn.layers.linear import linear
from emhrnn.layers.native.library import CellName
from emhrnn.layers.packing import Packing, pack
from emhrnn.layers.scan import LearnedRows

__all__ = ["GRU", "LSTM", "Bidirectional", "CellName", "LearnedRows", "Recurrent", "recurrent_layer"]


class Recurrent(nn.Module):
    """Either of the two recurrent layers, where it does not matter which."""

    cell: ClassVar[Cell]
    blocks: ClassVar[int]  # of gates, hidden_size rows each

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        weights = gate_weights(self.blocks, input_size, hidden_size, generator)
        self.input_weight, self.state_weight, self.bias = weights

    @property
    def hidden_size(self) -> int:
        return self.state_weight.shape[1]

    def forward(
        self, x: Float[Tensor, "n D"], packing: Packing, learned: LearnedRows | None = None
    ) -> Float[Tensor, "n H"]:
        """`learned`: rows of a frozen x that have a gradient all the same."""
        return scan.run(self.cell, x, packing, learned, self.input_weight, self.state_weight, self.bias)

    def project(self, x: Float[Tensor, "m D"]) -> Float[Tensor, "m gates"]:
        """The input's part of the gates, W x + b; over a whole vocabulary, it is a table for `forward_projected`."""
        return linear(x, self.input_weight, self.bias)

    def forward_projected(
        self, projection: Float[Tensor, "m gates"], packing: Packing, index: Int64[Tensor, " n"] | None = None
    ) -> Float[Tensor, "n H"]:
        """From input projections that exist already; position i reads row index[i], or row i without an index."""
        return scan.run_projected(self.cell, projection, packing, index, self.state_weight)


class LSTM(Recurrent):
    """The LSTM of equation 1; forget gates start open."""

    cell = LSTMCell
    blocks = 4

    def __init__(self, input_size: int, hidden_size: int, *, generator: torch.Generator) -> None:
        super().__init__(input_size, hidden_size, generator=generator)
        with torch.no_grad():
            self.bias[hidden_size : 2 * hidden_size] = 1


class GRU(Recurrent):
    """h = h_prev + u * (n - h_prev)"""

    cell = GRUCell
    blocks = 3


def recurrent_layer(cell: CellName, input_size: int, hidden_size: int, generator: torch.Generator) -> Recurrent:
    """The layer with this cell."""
    kind = LSTM if cell == "lstm" else GRU
    return kind(input_size, hidden_size, generator=generator)


class Bidirectional(nn.Module):
    """Two recurrent layers over the same sequences, one from each end: [forward ; backward] states of every row."""

    def __init__(self, forward_layer: Recurrent, backward_layer: Recurrent) -> None:
        super().__init__()
        self.forward_layer = forward_layer
        self.backward_layer = backward_layer

    @property
    def hidden_size(self) -> int:
        return self.forward_layer.hidden_size + self.backward_layer.hidden_size

    def forward(
        self,
        x: Float[Tensor, "n D"],
        offsets: Int64[np.ndarray, " sequences_plus_1"],
        learned: LearnedRows | None = None,
    ) -> Float[Tensor, "n both_H"]:
        forward = self.forward_layer(x, pack(offsets), learned)
        backward = self.backward_layer(x, pack(offsets, reverse=True), learned)
        return torch.cat([forward, backward], dim=1)
