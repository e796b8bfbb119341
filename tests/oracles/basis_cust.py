"""Basis customisation from docs/paper.md 5, one document, with the customised matrix written out."""

from types import SimpleNamespace

import torch
from torch import Tensor

from tests.oracles.cma import id_vector
from tests.oracles.recurrent import layer_states


def customized(layer, extra: Tensor) -> SimpleNamespace:
    """The LSTM of one document."""
    D = layer.input_weight.shape[1]
    return SimpleNamespace(
        input_weight=layer.input_weight + extra[:, :D],
        state_weight=layer.state_weight + extra[:, D:],
        bias=layer.bias,
        hidden_size=layer.hidden_size,
    )


def logits(model, sentences: list[list[int]], user: int, product: int) -> Tensor:
    m = torch.cat([id_vector(model.users, user), id_vector(model.products, product)])
    beta = torch.softmax(model.keys @ torch.tanh(model.query.weight @ m + model.query.bias), dim=0)
    extra = sum(weight * basis for weight, basis in zip(beta, model.bases, strict=True))

    x = model.embedding.vectors()[[word for words in sentences for word in words]]
    if model.customize == "word":
        x = torch.stack([torch.tanh((model.word_map.weight + extra) @ x_t + model.word_map.bias) for x_t in x])
    offsets = [0, len(x)]
    layers = [model.word_layer.forward_layer, model.word_layer.backward_layer]
    if model.customize == "encoder":
        layers = [customized(layer, part) for layer, part in zip(layers, extra.chunk(2), strict=True)]
    forward = layer_states(layers[0], x, offsets)
    backward = layer_states(layers[1], x, offsets, reverse=True)
    h = torch.cat([forward, backward], dim=1)
    W_a = model.attention.weight + (extra if model.customize == "attention" else 0)
    scores = torch.stack([torch.tanh(W_a @ h_t + model.attention.bias) @ model.context for h_t in h])
    v = torch.softmax(scores, dim=0) @ h
    W = model.output.weight + (extra if model.customize == "linear" else 0)
    return W @ v + model.output.bias + (extra.squeeze(1) if model.customize == "bias" else 0)
