"""MHS-RNN straight from docs/paper.md 2: one document, word by word; autograd with a straight-through step."""

import torch
from torch import Tensor

from tests.oracles.em_hrnn import pool
from tests.oracles.hm_rnn import lstm_gates, step_through
from tests.oracles.recurrent import layer_states


def sentence_states(model, words: list[int]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """h1, h2 and z of one sentence."""
    H = model.wiring.size
    x = model.embedding.vectors()[words]
    h1 = c1 = h2 = c2 = x.new_zeros(H)
    z = x.new_zeros(())
    states: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    own, below = model.phrase_weight.split(H, dim=1)
    for t, x_t in enumerate(x):
        m = (1 - z) * h1 + z * h2
        s = model.word_weight @ m + model.input.weight @ x_t + model.input.bias
        i, f, g, o = lstm_gates(s, H)
        c1 = (1 - z) * f * c1 + i * g
        h1 = o * torch.tanh(c1)
        z = step_through(s[4 * H], float(model.slope), forced=t == len(words) - 1)
        # the phrase reads z h1, as a layer of an HM-LSTM does: the same where z = 1, where alone it counts
        i, f, g, o = lstm_gates(own @ h2 + z * (below @ h1) + model.phrase_bias, H)
        c2 = z * (f * c2 + i * g) + (1 - z) * c2
        h2 = z * o * torch.tanh(c2) + (1 - z) * h2
        for values, value in zip(states, (h1, h2, z), strict=True):
            values.append(value)
    return states


def logits(model, sentences: list[list[int]]) -> Tensor:
    s = []
    for words in sentences:
        h1, h2, z = sentence_states(model, words)
        if model.word_phrase_attention is None:
            s.append(h2[-1])
        else:
            ends = [h for h, end in zip(h2, z, strict=True) if end > 0.5]
            s.append(pool(model.word_phrase_attention, h1 + ends))
    x, offsets = torch.stack(s), [0, len(s)]
    forward = layer_states(model.sentence_layer.forward_layer, x, offsets)
    backward = layer_states(model.sentence_layer.backward_layer, x, offsets, reverse=True)
    h3 = torch.cat([forward, backward], dim=1)
    v = h3.mean(0) if model.sentence_attention is None else pool(model.sentence_attention, list(h3))
    return model.output.weight @ v + model.output.bias
