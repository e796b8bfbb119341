"""Recurrent layers as their equations say, one sequence, one word at a time."""

import itertools

import torch
from torch import Tensor

from emhrnn.layers.recurrent import GRU, LSTM


def lstm_step(lstm: LSTM, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (lstm.input_weight @ x + lstm.state_weight @ h + lstm.bias).chunk(4)
    c = i.sigmoid() * g.tanh() + f.sigmoid() * c
    return o.sigmoid() * c.tanh(), c


def gru_step(gru: GRU, x: Tensor, h: Tensor) -> tuple[Tensor]:
    (x_r, x_u, x_n), (h_r, h_u, h_n) = (gru.input_weight @ x + gru.bias).chunk(3), (gru.state_weight @ h).chunk(3)
    u = (x_u + h_u).sigmoid()
    n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return ((1 - u) * h + u * n,)


def step(layer: LSTM | GRU, x: Tensor, *state: Tensor) -> tuple[Tensor, ...]:
    """The next state: (h, c) of an LSTM, (h,) of a GRU."""
    return gru_step(layer, x, *state) if isinstance(layer, GRU) else lstm_step(layer, x, *state)


def zero_state(layer: LSTM | GRU) -> tuple[Tensor, ...]:
    zeros = torch.zeros_like(layer.state_weight[0])
    return (zeros,) if isinstance(layer, GRU) else (zeros, zeros)


def layer_states(layer: LSTM | GRU, x: Tensor, offsets: list[int], *, reverse: bool = False) -> Tensor:
    states: list[Tensor] = [torch.empty(0)] * len(x)
    for start, end in itertools.pairwise(offsets):
        state = zero_state(layer)
        for t in reversed(range(start, end)) if reverse else range(start, end):
            state = step(layer, x[t], *state)
            states[t] = state[0]
    return torch.stack(states)


def forest_states(layer: LSTM | GRU, x: Tensor, inputs: list[int], parents: list[int]) -> list[tuple[Tensor, ...]]:
    states: list[tuple[Tensor, ...]] = []
    for read, parent in zip(inputs, parents, strict=True):
        states.append(step(layer, x[read], *(states[parent] if parent >= 0 else zero_state(layer))))
    return states
