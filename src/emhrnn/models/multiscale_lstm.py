r"""LSTM layers that tell each other when to run: the HM-LSTM of Chung, Ahn and Bengio (ICLR 2017; SPEC 3), step by step
over the words and all sequences of a batch at once.

    h3  ------------------ h3 ------     top: COPY until the layer below ends a unit, then UPDATE
             z2 = 0       z2 = 1
    h2  ----- h2 --------- h2 ------     UPDATE at an end below, COPY elsewhere, FLUSH after its own end
       z1 = 1    z1 = 0   z1 = 1
    h1 -- h1 -- h1 -- h1 -- h1 -----     bottom: UPDATE at every word, FLUSH after its own end

With a = z^l_(t-1), the layer's own end before, and b = z^(l-1)_t, the end below now (bottom: b = 1; top: a = 0):

    gates i f g o and x_z = state_weight h^l_(t-1) + a above_weight h^(l+1)_(t-1) + b below_weight h^(l-1)_t + bias
    c = (1-a)(1-b) c_prev  +  (1-a) b (f c_prev)  +  (1 - (1-a)(1-b)) i g         COPY + UPDATE + both UPDATE and FLUSH
    h = (1-a)(1-b) h_prev  +  (1 - (1-a)(1-b)) o tanh(c)
    z = 1[x_z > 0]                                                               straight-through, see boundary.py

The terms with a and b are products, so the formulas are differentiable in them; these are the gradients that the
detectors get. The backward pass is by hand: what does not depend on the step is computed for all rows at once, and a
step of a layer is one matrix product and a dozen light operations.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.cell import tanh_
from emhrnn.layers.packing import Packing


@dataclass(frozen=True)
class Wiring:
    """How the layers hang together. `flush_own` keeps a layer's own state, too, out of the gates after its own end
    (MHS-RNN); HM-RNN lets it in."""

    layers: int
    size: int
    flush_own: bool = False

    def sources(self, layer: int) -> tuple[str, ...]:
        """What the gates of a layer read, in the order of the columns of its weight."""
        above = ("above",) if layer < self.layers - 1 else ()
        below = ("below",) if layer > 0 else ()
        return ("own", *above, *below)

    def has_detector(self, layer: int) -> bool:
        return layer < self.layers - 1

    def columns(self, layer: int, source: str) -> slice:
        at = self.sources(layer).index(source)
        return slice(at * self.size, (at + 1) * self.size)


def multiscale_states(
    projection: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    packing: Packing,
    wiring: Wiring,
    forced: Bool[Tensor, " n"] | None = None,
) -> tuple[list[Float[Tensor, "n H"]], list[Float[Tensor, " n"]]]:
    """States h of every layer and detector inputs x_z of every layer but the top, in flat order.

    `projection` is the bottom layer's input term with its bias; weights[l] (gates, sources * H) reads the sources of
    layer l; biases are those of the layers above the bottom. Where `forced`, z of the bottom layer is 1 whatever its
    detector says, and the detector gets no gradient.
    """
    forced_rows = None if forced is None else forced.index_select(0, packing.order)
    outputs = _Scan.apply(  # type: ignore[no-untyped-call]
        projection.index_select(0, packing.order), slope, packing, wiring, forced_rows, *weights, *biases
    )
    flat = [output.index_select(0, packing.inverse) for output in outputs]
    return flat[: wiring.layers], [x_z.squeeze(1) for x_z in flat[wiring.layers :]]


class _Scan(torch.autograd.Function):
    """Packed rows. The projection is overwritten: callers pass a fresh tensor."""

    @staticmethod
    def forward(
        ctx: Any,
        projection: Tensor,
        slope: Tensor,
        packing: Packing,
        wiring: Wiring,
        forced: Tensor | None,
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        L, H = wiring.layers, wiring.size
        n = len(projection)
        weights, biases = parameters[:L], parameters[L:]
        transposed = [_double_candidate(weight.t().contiguous(), H, dim=1) for weight in weights]
        gates = [_double_candidate(projection, H, dim=1)]
        gates += [_double_candidate(bias.clone(), H, dim=0).expand(n, -1).contiguous() for bias in biases]
        inputs = [projection.new_zeros(n, weight.shape[1]) for weight in weights]
        h = [projection.new_empty(n, H) for _ in range(L)]
        c = [projection.new_empty(n, H) for _ in range(L)]
        z = [projection.new_empty(n, 1) for _ in range(L - 1)]
        must = None if forced is None else forced.unsqueeze(1)

        first = int(packing.batch_sizes[0])
        zero, never = projection.new_zeros(first, H), projection.new_zeros(first, 1)
        h_prev, c_prev, z_prev = [zero] * L, [zero] * L, [never] * (L - 1)
        start = 0
        for size in packing.batch_sizes.tolist():
            rows = slice(start, start + size)
            h_prev, c_prev, z_prev = ([x[:size] for x in state] for state in (h_prev, c_prev, z_prev))
            for l in range(L):
                a = z_prev[l] if wiring.has_detector(l) else None
                b = z[l - 1][rows] if l > 0 else None
                x = inputs[l][rows]
                if wiring.flush_own and a is not None:
                    torch.mul(h_prev[l], 1 - a, out=x[:, :H])
                else:
                    x[:, :H] = h_prev[l]
                if a is not None:
                    torch.mul(h_prev[l + 1], a, out=x[:, H : 2 * H])
                if b is not None:
                    torch.mul(h[l - 1][rows], b, out=x[:, -H:])
                s = gates[l][rows].addmm_(x, transposed[l])
                _cell_(s, a, b, h_prev[l], c_prev[l], h[l][rows], c[l][rows])
                if l < L - 1:
                    ends = s[:, 4 * H :] > 0
                    if must is not None and l == 0:
                        ends |= must[rows]
                    z[l][rows] = ends
            h_prev, c_prev, z_prev = ([x[rows] for x in state] for state in (h, c, z))
            start += size
        ctx.packing, ctx.wiring, ctx.forced = packing, wiring, forced
        ctx.save_for_backward(slope, *weights, *gates, *inputs, *h, *c, *z)
        x_z = [gates[l][:, 4 * H :].clone() for l in range(L - 1)]
        ctx.mark_non_differentiable(*x_z)
        return *h, *x_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        wiring, packing = ctx.wiring, ctx.packing
        L, H = wiring.layers, wiring.size
        slope, *saved = ctx.saved_tensors
        weights, gates, inputs, h, c = (saved[k * L : (k + 1) * L] for k in range(5))
        z = saved[5 * L :]
        layers = [
            _Slopes.of(l, wiring, packing, gates[l], h, c[l], z, slope, ctx.forced if l == 0 else None)
            for l in range(L)
        ]

        first = int(packing.batch_sizes[0])
        # d[l] gathers what flows into layer l at the step: columns dc, dh, then (from its own product) d inputs
        d = [c[l].new_zeros(first, 2 * H + weights[l].shape[1]) for l in range(L)]
        d_z = [c[l].new_zeros(first, 1) for l in range(L - 1)]
        end = len(h[0])
        for size in reversed(packing.batch_sizes.tolist()):
            rows = slice(end - size, end)
            for l in reversed(range(L)):
                layer, d_l = layers[l], d[l][:size]
                d_c, d_h, d_x = d_l[:, :H], d_l[:, H : 2 * H], d_l[:, 2 * H :]
                d_h += gradients[l][rows]
                d_c.addcmul_(layer.through_h[rows], d_h)
                d_s = layer.slopes[rows]  # in place: a slope is used once
                d_s[:, : 3 * H].view(-1, 3, H).mul_(d_c.unsqueeze(1))
                d_s[:, 3 * H : 4 * H].mul_(d_h)
                if l < L - 1:
                    d_s[:, 4 * H :].mul_(d_z[l][:size])
                torch.mm(d_s, weights[l], out=d_x)
                d_ab = torch.linalg.vecdot(layer.to_ends[rows], d_l.unsqueeze(1))  # (size, 1 or 2)
                # to the layer below at this step, and to all at the step before
                d_c.mul_(layer.keep[rows])
                own = d_x[:, :H]
                if layer.copy is None:
                    d_h.zero_()
                else:
                    d_h.mul_(layer.copy[rows])
                if layer.a is not None:
                    a = layer.a[rows]
                    d[l + 1][:size, H : 2 * H].addcmul_(d_x[:, H : 2 * H], a)
                    d_z[l][:size] = d_ab[:, :1]
                    d_h.add_(own) if not wiring.flush_own else d_h.addcmul_(own, 1 - a)
                else:
                    d_h.add_(own)
                if layer.b is not None:
                    d[l - 1][:size, H : 2 * H].addcmul_(d_x[:, -H:], layer.b[rows])
                    d_z[l - 1][:size].add_(d_ab[:, -1:])
            end -= size
        d_weights = [layer.slopes.t() @ x for layer, x in zip(layers, inputs, strict=True)]
        d_biases = [layer.slopes.sum(0) for layer in layers[1:]]
        return layers[0].slopes, None, None, None, None, *d_weights, *d_biases


def _double_candidate(x: Tensor, H: int, dim: int) -> Tensor:
    """Twice the columns of g, in place: tanh(s) = 2 sigmoid(2 s) - 1, so one sigmoid serves all gates."""
    x.narrow(dim, 2 * H, H).mul_(2)
    return x


def _cell_(s: Tensor, a: Tensor | None, b: Tensor | None, h_prev: Tensor, c_prev: Tensor, h: Tensor, c: Tensor) -> None:
    """Turns the gates in `s` into the activated i f g o and writes `c` and `h`."""
    H = h.shape[1]
    i, f, g, o = s[:, : 4 * H].sigmoid_().view(-1, 4, H).unbind(1)
    torch.mul(i, g.mul_(2).sub_(1), out=c)
    if b is None:  # bottom: never COPY
        c.addcmul_(f if a is None else f * (1 - a), c_prev)
        torch.mul(o, torch.tanh(c), out=h)
        return
    if a is None:  # top: never FLUSH
        active = b
        c.addcmul_(f, c_prev)
        torch.lerp(c_prev, c, active, out=c)
    else:
        update = (1 - a) * b
        active = update + a
        c.mul_(active).addcmul_(torch.addcmul(1 - active, f, update), c_prev)
    torch.mul(o, torch.tanh(c), out=h)
    torch.lerp(h_prev, h, active, out=h)


@dataclass
class _Slopes:
    """What the backward scan multiplies by, for all rows of a layer at once."""

    a: Tensor | None  # (n, 1) own end before
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
        packing: Packing,
        gates: Tensor,
        h: list[Tensor],
        c: Tensor,
        z: list[Tensor],
        slope: Tensor,
        forced: Tensor | None,
    ) -> "_Slopes":
        H = wiring.size
        i, f, g, o = gates[:, : 4 * H].view(-1, 4, H).unbind(1)
        h_prev, c_prev = _before(h[l], packing), _before(c, packing)
        a = _before(z[l], packing) if wiring.has_detector(l) else None
        b = z[l - 1] if l > 0 else None
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
            if forced is not None:
                linear &= ~forced.unsqueeze(1)
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
            inputs[:, wiring.columns(l, "above")] = _before(h[l + 1], packing)
            if wiring.flush_own:
                torch.neg(h_prev, out=inputs[:, wiring.columns(l, "own")])
        if b is not None:
            d_b = to_ends[:, -1]
            torch.mul(fresh - c_prev + f * c_prev, not_a, out=d_b[:, :H])
            torch.mul(output - h_prev, not_a, out=d_b[:, H : 2 * H])
            d_b[:, 2 * H :][:, wiring.columns(l, "below")] = h[l - 1]
        return cls(a, b, slopes, through_h, keep, copy, to_ends)


def _before(x: Tensor, packing: Packing) -> Tensor:
    """The packed rows one step earlier; zeros before the first."""
    return torch.cat([torch.zeros_like(x[: int(packing.batch_sizes[0])]), x.index_select(0, packing.previous)])
