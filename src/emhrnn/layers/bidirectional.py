"""Two recurrent layers over the same sequences, one from each end."""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from emhrnn.layers.learned import LearnedRows
from emhrnn.layers.packing import pack
from emhrnn.layers.recurrent import Recurrent


class Bidirectional(nn.Module):
    """[forward ; backward] states of every row."""

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
