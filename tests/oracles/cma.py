"""CMA as docs/paper.md 5 reads it: one document, loops over words, sentences and ways."""

import torch
from torch import Tensor

from tests.oracles.recurrent import layer_states


def id_vector(layer, value: int) -> Tensor:
    if not layer.used:
        return layer.table[0]
    return layer.table.detach().mean(0) if value < 0 else layer.table[value]


def way_pool(attention, way: int, states: list[Tensor], u: Tensor, p: Tensor) -> Tensor:
    term = [attention.user @ u, attention.product @ p, attention.both @ torch.cat([u, p])][way]
    scores = [
        attention.context[way] @ torch.tanh(attention.state.weight @ h + attention.state.bias + term) for h in states
    ]
    weights = torch.softmax(torch.stack(scores), dim=0)
    return sum(weight * h for weight, h in zip(weights, states, strict=True))


def logits(model, sentences: list[list[int]], user: int, product: int) -> Tensor:
    vectors = model.embedding.vectors()
    u, p = id_vector(model.users, user), id_vector(model.products, product)
    h1 = [list(layer_states(model.word_layer, vectors[words], [0, len(words)])) for words in sentences]
    v = []
    for way in range(3):
        s = torch.stack([way_pool(model.word_attention, way, states, u, p) for states in h1])
        h3 = layer_states(model.sentence_layer, s, [0, len(s)])
        v.append(way_pool(model.sentence_attention, way, list(h3), u, p))
    return model.output.weight @ torch.cat(v) + model.output.bias
