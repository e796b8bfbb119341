"""HM-RNN straight from docs/paper.md 3: one document, word by word; autograd with a straight-through step."""

import torch
from torch import Tensor

from emhrnn.paper.models.hm_rnn import LIMIT


def step_through(x: Tensor, slope: float, forced: bool = False) -> Tensor:
    """z, whose gradient is that of the hard sigmoid."""
    if forced:
        return torch.ones_like(x)
    soft = ((slope * x + 1) / 2).clamp(0, 1)
    return (soft > 0.5).to(x.dtype) + soft - soft.detach()


def lstm_gates(s: Tensor, H: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Activated; gradients of the sums s, also that of a detector, are clipped."""
    if s.requires_grad:
        s.register_hook(lambda gradient: gradient.clamp(-LIMIT, LIMIT))
    i, f, g, o = s[: 4 * H].split(H)
    return i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()


def states(model, words: list[int]) -> tuple[list[list[Tensor]], list[list[Tensor]]]:
    """h[t][l] and z[t][l]."""
    L, H = model.wiring.layers, model.wiring.size
    x = model.embedding.vectors()[words]
    zero, one = x.new_zeros(H), x.new_ones(())
    h, c, z = [zero] * L, [zero] * L, [0 * one] * L  # the top layer's z is never 1
    all_h, all_z = [], []
    for x_t in x:
        before_h, before_c, before_z = h, c, z
        h, c, z = [], [], []
        for l in range(L):
            b = z[l - 1] if l > 0 else one
            a = before_z[l]
            W = list(model.weights[l].split(H, dim=1))
            s = W.pop(0) @ before_h[l]
            if l < L - 1:
                s = s + a * (W.pop(0) @ before_h[l + 1])
            if l > 0:
                s = s + b * (W.pop(0) @ h[l - 1]) + model.biases[l - 1]
            else:
                s = s + model.input.weight @ x_t + model.input.bias
            i, f, g, o = lstm_gates(s, H)
            update, copy, flush = (1 - a) * b, (1 - a) * (1 - b), a
            c_l = update * (f * before_c[l] + i * g) + copy * before_c[l] + flush * (i * g)
            h.append(copy * before_h[l] + (update + flush) * o * torch.tanh(c_l))
            c.append(c_l)
            z.append(step_through(s[4 * H], float(model.slope)) if l < L - 1 else 0 * one)
        all_h.append(h)
        all_z.append(z)
    return all_h, all_z


def logits(model, sentences: list[list[int]]) -> Tensor:
    H = model.wiring.size
    emitted = []
    for h in states(model, [word for sentence in sentences for word in sentence])[0]:
        g = torch.sigmoid(model.gate.weight @ torch.cat(h) + model.gate.bias)
        parts = [g[l] * (W @ h[l]) for l, W in enumerate(model.emit.weight.split(H, dim=1))]
        emitted.append(torch.relu(sum(parts) + model.emit.bias))
    v = torch.stack(emitted).mean(0)
    return model.output.weight @ v + model.output.bias
