"""The backward pass of the multiscale LSTM, by hand; the equations are in multiscale_lstm.py.

stretch of steps   all rows at once: how c, h, z and the gates depend on what came before (`Slopes`)
                   step by step, from the last: one matrix product and a dozen light operations (`backward_scan`)
                   all rows at once: the gradients of the weights

Gradients of gates before activation are clipped to +-LIMIT, as Graves (arXiv 1308.0850) does: they may grow from word
to word, and over the hundreds of words of a document beyond all numbers. The loss is a mean over documents, so that
sound gradients are far smaller.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emhrnn.layers.cells import tanh_
from emhrnn.layers.packing import Packing
from emhrnn.paper.models.multiscale_wiring import Wiring

ROWS = 2048  # of a stretch of steps
LIMIT = 1.0  # of a gradient of a gate


@dataclass(frozen=True)
class Stretch:
    """Some steps in a row. The backward pass goes stretch by stretch, so that what it computes for all rows at once
    stays in the cache."""

    steps: list[int]  # sequences at each step
    rows: slice  # packed rows of these steps
    first: int  # how many of them have no step before
    previous: Tensor  # packed rows one step before the others

    def before(self, x: Tensor) -> Tensor:
        """The rows one step earlier; zeros before the first."""
        earlier = x.index_select(0, self.previous)
        return torch.cat([torch.zeros_like(x[: self.first]), earlier]) if self.first else earlier


def stretches(packing: Packing) -> list[Stretch]:
    found, steps, begin, end = list[Stretch](), list[int](), 0, 0
    sizes = packing.batch_sizes.tolist()
    for t, size in enumerate(sizes):
        steps.append(size)
        end += size
        if end - begin >= ROWS or t == len(sizes) - 1:
            first = 0 if begin else sizes[0]
            previous = packing.previous[begin + first - sizes[0] : end - sizes[0]]
            found.append(Stretch(steps, slice(begin, end), first, previous))
            steps, begin = [], end
    return found


@dataclass(frozen=True)
class Carried:
    """What flows into each layer from later steps and higher layers: columns dc, dh, and, written by the layer's own
    product, d inputs; and dz."""

    d: list[Tensor]
    d_z: list[Tensor]

    @classmethod
    def zeros(cls, sequences: int, weights: Sequence[Tensor], wiring: Wiring) -> "Carried":
        return cls(
            [weight.new_zeros(sequences, 2 * wiring.size + weight.shape[1]) for weight in weights],
            [weight.new_zeros(sequences, 1) for weight in weights],
        )


def backward_scan(
    wiring: Wiring,
    stretch: Stretch,
    weights: Sequence[Tensor],
    layers: list["Slopes"],
    gradients: Sequence[Tensor],
    carried: Carried,
) -> None:
    """Turns the slopes of every layer into the gradients of its gates before activation."""
    L, H = wiring.layers, wiring.size
    steps = stretch.steps
    d_out = [torch.split(gradient[stretch.rows], steps) for gradient in gradients[:L]]
    d_s = [torch.split(layer.slopes, steps) for layer in layers]
    d_ifg = [torch.split(layer.slopes[:, : 3 * H].view(-1, 3, H), steps) for layer in layers]
    d_o = [torch.split(layer.slopes[:, 3 * H : 4 * H], steps) for layer in layers]
    d_x_z = [torch.split(layer.slopes[:, 4 * H :], steps) for layer in layers]
    through_h, keep, to_ends = (
        [torch.split(getattr(layer, name), steps) for layer in layers] for name in ("through_h", "keep", "to_ends")
    )
    a, not_a, b, copy = (
        [None if (x := getattr(layer, name)) is None else torch.split(x, steps) for layer in layers]
        for name in ("a", "not_a", "b", "copy")
    )

    size = -1
    for t in reversed(range(len(steps))):
        if steps[t] != size:  # more sequences from here on
            size = steps[t]
            d = [tensor[:size] for tensor in carried.d]
            d_z = [tensor[:size] for tensor in carried.d_z]
            d_c, d_h, d_own, d_above = ([x[:, k * H : (k + 1) * H] for x in d] for k in range(4))
            d_below, d_x = [x[:, -H:] for x in d], [x[:, 2 * H :] for x in d]
            d_row, d_c_row = [x.unsqueeze(1) for x in d], [x.unsqueeze(1) for x in d_c]
        for l in reversed(range(L)):
            d_h[l].add_(d_out[l][t])
            d_c[l].addcmul_(through_h[l][t], d_h[l])
            d_ifg[l][t].mul_(d_c_row[l])
            d_o[l][t].mul_(d_h[l])
            if l < L - 1:
                d_x_z[l][t].mul_(d_z[l])
            d_s[l][t].clamp_(-LIMIT, LIMIT)
            torch.mm(d_s[l][t], weights[l], out=d_x[l])
            d_ends = (to_ends[l][t] * d_row[l]).sum(2)  # (size, 1 or 2)
            # to the step before, to the layer above there, and to the layer below at this step
            d_c[l].mul_(keep[l][t])
            if (copied := copy[l]) is None:
                d_h[l].zero_()
            else:
                d_h[l].mul_(copied[t])
            if wiring.flush_own and (kept := not_a[l]) is not None:
                d_h[l].addcmul_(d_own[l], kept[t])
            else:
                d_h[l].add_(d_own[l])
            if (ended := a[l]) is not None:
                d_h[l + 1].addcmul_(d_above[l], ended[t])
                d_z[l].copy_(d_ends[:, :1])
            if (ended_below := b[l]) is not None:
                d_h[l - 1].addcmul_(d_below[l], ended_below[t])
                d_z[l - 1].add_(d_ends[:, -1:])


@dataclass
class Slopes:
    """What the backward scan multiplies by, for all rows of a layer in a stretch at once."""

    a: Tensor | None  # (n, 1) own end before
    not_a: Tensor | None  # (n, 1)
    b: Tensor | None  # (n, 1) end below
    slopes: Tensor  # (n, gates): d pre-activation / d c for i f g, d h for o, d z for the detector
    through_h: Tensor  # (n, H): d c / d h
    keep: Tensor  # (n, H): d c_prev / d c
    copy: Tensor | None  # (n, 1): d h_prev / d h
    to_ends: Tensor  # (n, 1 or 2, columns of d): d a and d b from dc, dh and d inputs

    @classmethod
    def of(
        cls,
        l: int,
        wiring: Wiring,
        stretch: Stretch,
        all_gates: list[Tensor],
        h: list[Tensor],
        all_c: list[Tensor],
        z: list[Tensor],
        slope: Tensor,
        forced: Tensor | None,
    ) -> "Slopes":
        H, rows, before = wiring.size, stretch.rows, stretch.before
        gates, c = all_gates[l][rows], all_c[l][rows]
        i, f, half_g, o = gates[:, : 4 * H].view(-1, 4, H).unbind(1)
        g = 2 * half_g - 1
        h_prev, c_prev = before(h[l]), before(all_c[l])
        a = before(z[l]) if wiring.has_detector(l) else None
        b = z[l - 1][rows] if l > 0 else None
        not_a = 1 if a is None else 1 - a
        update = not_a if b is None else not_a * b
        copy = None if b is None else not_a * (1 - b)
        active = 1 if copy is None else 1 - copy

        tanh_c = tanh_(c.clone())
        slopes = torch.empty_like(gates)
        s_i, s_f, s_g, s_o = slopes[:, : 4 * H].view(-1, 4, H).unbind(1)
        torch.mul(g, torch.addcmul(i, i, i, value=-1), out=s_i)
        torch.mul(c_prev * update, torch.addcmul(f, f, f, value=-1), out=s_f)
        torch.addcmul(i, i, g * g, value=-1, out=s_g)
        torch.mul(tanh_c, torch.addcmul(o, o, o, value=-1), out=s_o)
        through_h = torch.addcmul(o, o, tanh_c * tanh_c, value=-1)
        keep = f * update
        if copy is not None:
            for x in (s_i, s_g, s_o, through_h):
                x.mul_(active)
            keep.add_(copy)
        if wiring.has_detector(l):
            x_z = gates[:, 4 * H :]
            linear = (slope * x_z).abs() < 1
            if forced is not None and l == 0:
                linear &= ~forced[rows].unsqueeze(1)
            torch.mul(linear, slope / 2, out=slopes[:, 4 * H :])

        fresh, output = i * g, o * tanh_c
        columns = 2 * H + H * len(wiring.sources(l))
        to_ends = c.new_zeros(len(c), (a is not None) + (b is not None), columns)
        if a is not None:
            d_a = to_ends[:, 0]
            if b is None:
                torch.mul(f, c_prev, out=d_a[:, :H]).neg_()
            else:
                torch.sub(fresh - c_prev, b * (fresh - c_prev + f * c_prev), out=d_a[:, :H])
                torch.mul(output - h_prev, 1 - b, out=d_a[:, H : 2 * H])
            inputs = d_a[:, 2 * H :]
            inputs[:, wiring.columns(l, "above")] = before(h[l + 1])
            if wiring.flush_own:
                torch.neg(h_prev, out=inputs[:, wiring.columns(l, "own")])
        if b is not None:
            d_b = to_ends[:, -1]
            torch.mul(fresh - c_prev + f * c_prev, not_a, out=d_b[:, :H])
            torch.mul(output - h_prev, not_a, out=d_b[:, H : 2 * H])
            d_b[:, 2 * H :][:, wiring.columns(l, "below")] = h[l - 1][rows]
        return cls(a, None if a is None else 1 - a, b, slopes, through_h, keep, copy, to_ends)
