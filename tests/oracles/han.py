"""HAN straight from docs/paper.md 4: one document, Python loops over words and sentences."""

import torch
from torch import Tensor

from tests.oracles.em_hrnn import pool
from tests.oracles.recurrent import layer_states


def bigru(layer, inputs: list[Tensor]) -> list[Tensor]:
    x, offsets = torch.stack(inputs), [0, len(inputs)]
    forward = layer_states(layer.forward_layer, x, offsets)
    backward = layer_states(layer.backward_layer, x, offsets, reverse=True)
    return list(torch.cat([forward, backward], dim=1))


def pooled(model_pool, pooling: str, states: list[Tensor]) -> Tensor:
    if pooling == "attention":
        return pool(model_pool, states)
    stacked = torch.stack(states)
    return stacked.mean(0) if pooling == "mean" else stacked.max(0).values


def logits(model, pooling: str, sentences: list[list[int]]) -> Tensor:
    vectors = model.embedding.vectors()
    s = [pooled(model.word_pool, pooling, bigru(model.word_layer, [vectors[w] for w in words])) for words in sentences]
    v = pooled(model.sentence_pool, pooling, bigru(model.sentence_layer, s))
    return model.output.weight @ v + model.output.bias
