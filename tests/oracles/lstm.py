"""The LSTM baseline of docs/paper.md 5, one document."""

import torch
from torch import Tensor

from tests.oracles.recurrent import layer_states


def logits(model, sentences: list[list[int]]) -> Tensor:
    words = [word for sentence in sentences for word in sentence]
    x = torch.stack([model.embedding.vectors()[word] for word in words])
    v = layer_states(model.word_layer, x, [0, len(x)]).mean(0)
    return model.output.weight @ v + model.output.bias
