"""The cells of recurrent layers: one step on rows of gates, and its derivative, as in native/cells.h.

LSTM (equation 1)    i, f, o = sigmoid(...)    g = tanh(...)    c = f * c_prev + i * g    h = o * tanh(c)

    gates i f g o; input and state reach all of them

GRU    r, u = sigmoid(W x + U h_prev + b)    n = tanh(W x + b + r * s)    s = U h_prev    h = h_prev + u * (n - h_prev)

    gates s r u n; the input reaches the last three and the state the first three. Weights have their rows as r u n

Both have the same functions, so that what runs them is written once: recurrent.py, forest.py.
"""

import math
from typing import Final

import torch
from torch import Tensor, nn

from emhrnn.shapes import Float

States = tuple[Tensor, ...]  # what a step hands on, (n, H) each: (h, c) of an LSTM, (h,) of a GRU


def gate_weights(
    gates: int, input_size: int, hidden_size: int, generator: torch.Generator
) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
    """Of the input, of the state, and the bias of all gates, as a recurrent layer begins."""
    bound = 1 / math.sqrt(hidden_size)
    of_input = torch.empty(gates * hidden_size, input_size).uniform_(-bound, bound, generator=generator)
    of_state = torch.empty(gates * hidden_size, hidden_size).uniform_(-bound, bound, generator=generator)
    return nn.Parameter(of_input), nn.Parameter(of_state), nn.Parameter(torch.zeros(gates * hidden_size))


def tanh_(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """tanh in place. By the sigmoid, which torch vectorises three times better on CPU."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)


class LSTMCell:
    """The state is (h, c). Input and state reach all four gates."""

    name: Final = "lstm"
    states = 2
    h_passes = 0  # how much of the gradient of h goes to h_prev past the gates

    @staticmethod
    def opened(projection: Float[Tensor, "n columns"]) -> Float[Tensor, "n columns"]:
        """Rows of gates that the input's part is in: the same tensor."""
        return projection

    of_input = opened  # of gates: those that the input reaches, in the order of its weight
    of_state = opened  # those that the state reaches, in the order of `to_gates`
    to_gates = from_gates = opened  # of the state's weight: its rows in the order of the gates, and back

    @staticmethod
    def activate_(gates: Float[Tensor, "n four_H"], before: States | None, now: States) -> None:
        """One step: turns `gates` into the activated i f g o and writes the states `now`; none `before` are zeros."""
        h, c = now
        H = h.shape[1]
        gates[:, 2 * H : 3 * H].mul_(2)
        i, f, g, o = gates.sigmoid_().view(-1, 4, H).unbind(1)
        torch.mul(i, g.mul_(2).sub_(1), out=c)
        if before is not None:
            c.addcmul_(f, before[1])
        torch.mul(o, tanh_(c.clone()), out=h)

    @staticmethod
    def slopes(
        gates: Float[Tensor, "n four_H"], now: States, before: States
    ) -> tuple[Float[Tensor, "n four_H"], States]:
        """What `backward_` multiplies by, for all rows at once: with dc the gradient of c and dh of h,

        d i, f, g (pre-activation) = slopes[:, :3H] * dc        d o = slopes[:, 3H:] * dh        dc += through_h * dh
        """
        c, c_prev = now[1], before[1]
        i, f, g, o = gates.view(-1, 4, c.shape[1]).unbind(1)
        tanh_c = tanh_(c.clone())
        slopes = torch.empty_like(gates)
        s_i, s_f, s_g, s_o = slopes.view(-1, 4, c.shape[1]).unbind(1)
        torch.mul(g, torch.addcmul(i, i, i, value=-1), out=s_i)
        torch.mul(c_prev, torch.addcmul(f, f, f, value=-1), out=s_f)
        torch.addcmul(i, i, g * g, value=-1, out=s_g)
        torch.mul(tanh_c, torch.addcmul(o, o, o, value=-1), out=s_o)
        through_h = torch.addcmul(o, o, tanh_c.square_(), value=-1)
        return slopes, (through_h, f)

    @staticmethod
    def backward_(slopes: Float[Tensor, "n four_H"], passed: States, d_states: States) -> None:
        """One step, in place: the slopes become gradients of the gates, and those of the states become what the states
        before get past the gates; that of h is left as it is, where nothing passes."""
        (through_h, forget), (d_h, d_c) = passed, d_states
        H = d_h.shape[1]
        d_c.addcmul_(through_h, d_h)
        slopes[:, : 3 * H].view(-1, 3, H).mul_(d_c.unsqueeze(1))
        slopes[:, 3 * H :].mul_(d_h)
        d_c.mul_(forget)


class GRUCell:
    """The state is (h,). The same functions as of the LSTM cell, whose comments say what they are for."""

    name: Final = "gru"
    states = 1
    h_passes = 1

    @staticmethod
    def opened(projection: Float[Tensor, "n three_H"]) -> Float[Tensor, "n four_H"]:
        return torch.nn.functional.pad(projection, (projection.shape[1] // 3, 0))

    @staticmethod
    def of_input(gates: Float[Tensor, "n four_H"]) -> Float[Tensor, "n three_H"]:
        return gates[:, gates.shape[1] // 4 :]

    @staticmethod
    def of_state(gates: Float[Tensor, "n four_H"]) -> Float[Tensor, "n three_H"]:
        return gates[:, : gates.shape[1] // 4 * 3]

    @staticmethod
    def to_gates(state_weight: Float[Tensor, "three_H H"]) -> Float[Tensor, "three_H H"]:
        return state_weight.roll(state_weight.shape[1], 0)  # n r u

    @staticmethod
    def from_gates(d_weight: Float[Tensor, "three_H H"]) -> Float[Tensor, "three_H H"]:
        return d_weight.roll(-d_weight.shape[1], 0)

    @staticmethod
    def activate_(gates: Float[Tensor, "n four_H"], before: States | None, now: States) -> None:
        (h,) = now
        H = h.shape[1]
        r, u = gates[:, H : 3 * H].sigmoid_().chunk(2, dim=1)
        s, n = gates[:, :H], gates[:, 3 * H :]
        if before is None:
            torch.mul(u, tanh_(n), out=h)
        else:
            torch.lerp(before[0], tanh_(n.addcmul_(r, s)), u, out=h)

    @staticmethod
    def slopes(
        gates: Float[Tensor, "n four_H"], now: States, before: States
    ) -> tuple[Float[Tensor, "n four_H"], States]:
        (h_prev,) = before
        s, r, u, n = gates.view(-1, 4, h_prev.shape[1]).unbind(1)
        slopes = torch.empty_like(gates)
        s_s, s_r, s_u, s_n = slopes.view(-1, 4, h_prev.shape[1]).unbind(1)
        torch.addcmul(u, u, n * n, value=-1, out=s_n)
        torch.mul(s_n, r, out=s_s)
        torch.mul(s_n * s, torch.addcmul(r, r, r, value=-1), out=s_r)
        torch.mul(n - h_prev, torch.addcmul(u, u, u, value=-1), out=s_u)
        return slopes, (1 - u,)

    @staticmethod
    def backward_(slopes: Float[Tensor, "n four_H"], passed: States, d_states: States) -> None:
        (keep,), (d_h,) = passed, d_states
        slopes.view(-1, 4, d_h.shape[1]).mul_(d_h.unsqueeze(1))
        d_h.mul_(keep)


Cell = type[LSTMCell] | type[GRUCell]
