"""Recurrent layers as their equations say, one sequence, one word at a time."""

import itertools

import torch
from torch import Tensor

from emhrnn.layers import GRU, LSTM


def lstm_step(lstm: LSTM, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (lstm.input_weight @ x + lstm.state_weight @ h + lstm.bias).chunk(4)
    c = i.sigmoid() * g.tanh() + f.sigmoid() * c
    return o.sigmoid() * c.tanh(), c


def lstm_states(lstm: LSTM, x: Tensor, offsets: list[int], *, reverse: bool = False) -> Tensor:
    states: list[Tensor] = [torch.empty(0)] * len(x)
    for start, end in itertools.pairwise(offsets):
        h = c = x.new_zeros(lstm.hidden_size)
        for t in reversed(range(start, end)) if reverse else range(start, end):
            h, c = lstm_step(lstm, x[t], h, c)
            states[t] = h
    return torch.stack(states)


def gru_states(gru: GRU, x: Tensor, offsets: list[int], *, reverse: bool = False) -> Tensor:
    H = gru.hidden_size
    states: list[Tensor] = [torch.empty(0)] * len(x)
    for start, end in itertools.pairwise(offsets):
        h = x.new_zeros(H)
        for t in reversed(range(start, end)) if reverse else range(start, end):
            from_x, from_h = gru.input_weight @ x[t] + gru.bias, gru.state_weight @ h
            r = (from_x[:H] + from_h[:H]).sigmoid()
            u = (from_x[H : 2 * H] + from_h[H : 2 * H]).sigmoid()
            n = (from_x[2 * H :] + r * from_h[2 * H :]).tanh()
            h = (1 - u) * h + u * n
            states[t] = h
    return torch.stack(states)


def forest_states(lstm: LSTM, x: Tensor, inputs: list[int], parents: list[int]) -> Tensor:
    states: list[tuple[Tensor, Tensor]] = []
    zero = x.new_zeros(lstm.hidden_size)
    for read, parent in zip(inputs, parents, strict=True):
        h, c = states[parent] if parent >= 0 else (zero, zero)
        states.append(lstm_step(lstm, x[read], h, c))
    return torch.stack([h for h, _ in states])
