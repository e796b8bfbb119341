"""Basis customisation from docs/paper.md 5, one document, with the customised matrix written out."""

import torch
from torch import Tensor

from tests.oracles.cma import id_vector
from tests.oracles.recurrent import layer_states


def logits(model, sentences: list[list[int]], user: int, product: int) -> Tensor:
    m = torch.cat([id_vector(model.users, user), id_vector(model.products, product)])
    beta = torch.softmax(model.keys @ torch.tanh(model.query.weight @ m + model.query.bias), dim=0)
    extra = sum(weight * basis for weight, basis in zip(beta, model.bases, strict=True))

    x = model.embedding.vectors()[[word for words in sentences for word in words]]
    offsets = [0, len(x)]
    forward = layer_states(model.word_layer.forward_layer, x, offsets)
    backward = layer_states(model.word_layer.backward_layer, x, offsets, reverse=True)
    h = torch.cat([forward, backward], dim=1)
    W_a, b_a = model.attention.weight, model.attention.bias
    scores = torch.stack([torch.tanh(W_a @ h_t + b_a) @ model.context for h_t in h])
    v = torch.softmax(scores, dim=0) @ h
    return (model.output.weight + extra) @ v + model.output.bias
