"""Conv-GRNN and LSTM-GRNN from docs/paper.md 5, one document, loops over windows and sentences."""

import torch
from torch import Tensor

from tests.oracles.recurrent import layer_states


def convolved(layer, x: list[Tensor]) -> Tensor:
    vectors = []
    for width, convolution in enumerate(layer.filters, start=1):
        padded = x + [torch.zeros_like(x[0])] * (width - len(x))
        windows = [torch.cat(padded[t : t + width]) for t in range(len(padded) - width + 1)]
        outputs = [convolution.weight @ window + convolution.bias for window in windows]
        vectors.append(torch.tanh(sum(outputs) / len(outputs)))
    return sum(vectors) / 3


def last_state(layer, x: list[Tensor]) -> Tensor:
    return layer_states(layer.lstm, torch.stack(x), [0, len(x)])[-1]


def gated(layer, inputs: list[Tensor]) -> list[Tensor]:
    size = layer.state_weight.shape[1]
    h, states = inputs[0].new_zeros(size), []
    for s in inputs:
        i, f, r = (layer.input.weight @ s + layer.state_weight @ h + layer.input.bias).split(size)
        h = torch.tanh(torch.sigmoid(i) * torch.tanh(r) + torch.sigmoid(f) * h)
        states.append(h)
    return states


def logits(model, kind: str, sentences: list[list[int]]) -> Tensor:
    vectors = model.embedding.vectors()
    sentence = convolved if kind == "convolution" else last_state
    s = [sentence(model.word_layer, [vectors[word] for word in words]) for words in sentences]
    forward, backward = gated(model.sentence_forward, s), gated(model.sentence_backward, s[::-1])[::-1]
    v = torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)]).mean(0)
    return model.output.weight @ v + model.output.bias
