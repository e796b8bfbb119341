"""Either of the two recurrent layers, where it does not matter which."""

import torch

from emhrnn.layers.gru import GRU
from emhrnn.layers.lstm import LSTM
from emhrnn.layers.native.library import CellName

__all__ = ["CellName", "Recurrent", "recurrent_layer"]

Recurrent = LSTM | GRU


def recurrent_layer(cell: CellName, input_size: int, hidden_size: int, generator: torch.Generator) -> Recurrent:
    kind = LSTM if cell == "lstm" else GRU
    return kind(input_size, hidden_size, generator=generator)
