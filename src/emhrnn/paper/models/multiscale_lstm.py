r"""LSTM layers that decide when the next runs: the HM-LSTM of Chung, Ahn and Bengio (ICLR 2017; docs/paper.md 3), step
by step over the words and all sequences of a batch at once.

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
step of a layer is one matrix product and a dozen light operations. The native kernels do the same (multiscale.h).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.cells import tanh_
from emhrnn.layers.native import kernels_for
from emhrnn.layers.native.multiscale import multiscale
from emhrnn.layers.packing import Packing

FIRST_SLOPE, LAST_SLOPE, PER_EPOCH = 1.0, 5.0, 0.04


def annealed_slope(epoch: int) -> float:
    """1 at first, 5 after a hundred epochs."""
    return min(LAST_SLOPE, FIRST_SLOPE + PER_EPOCH * epoch)


def hard_sigmoid(x: Float[Tensor, "*shape"], slope: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
    return ((slope * x + 1) / 2).clamp(0, 1)


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


def forward_scan(
    wiring: Wiring,
    packing: Packing,
    weights: Sequence[Tensor],
    gates: list[Tensor],
    inputs: list[Tensor],
    h: list[Tensor],
    c: list[Tensor],
    z: list[Tensor],
    forced: Tensor | None,
) -> None:
    """Fills inputs, h, c and z; `gates` come in as biases or projections and leave activated. The candidate is left as
    sigmoid(2 s), which is (1 + g) / 2: one sigmoid serves all gates."""
    L, H = wiring.layers, wiring.size
    transposed = [weight.t().contiguous() for weight in weights]
    for tensor in (*transposed, *gates):
        tensor[:, 2 * H : 3 * H].mul_(2)

    # Views of every step are made beforehand: they would cost as much as the arithmetic.
    steps = packing.batch_sizes.tolist()
    s, x, h_t, c_t, z_t = ([torch.split(tensor, steps) for tensor in tensors] for tensors in (gates, inputs, h, c, z))
    activated = [torch.split(tensor[:, : 4 * H], steps) for tensor in gates]
    i, f, g, o = ([torch.split(tensor[:, k * H : (k + 1) * H], steps) for tensor in gates] for k in range(4))
    x_z = [torch.split(tensor[:, 4 * H :], steps) for tensor in gates]
    from_own = [torch.split(tensor[:, :H], steps) for tensor in inputs]
    from_above = [torch.split(tensor[:, H : 2 * H], steps) for tensor in inputs]
    from_below = [torch.split(tensor[:, -H:], steps) for tensor in inputs]
    must = None if forced is None else torch.split(forced.to(gates[0].dtype).unsqueeze(1), steps)

    zero, never, no = (gates[0].new_zeros(shape) for shape in ((steps[0], H), (steps[0], 1), ()))
    h_prev, c_prev, z_prev = [zero] * L, [zero] * L, [never] * (L - 1)
    for t, size in enumerate(steps):
        if len(h_prev[0]) > size:  # some sequences have ended
            h_prev, c_prev, z_prev = ([state[:size] for state in states] for states in (h_prev, c_prev, z_prev))
        for l in range(L):
            if l < L - 1:
                a = z_prev[l]
                update = 1 - a
                torch.mul(h_prev[l + 1], a, out=from_above[l][t])
            if wiring.flush_own and l < L - 1:
                torch.mul(h_prev[l], update, out=from_own[l][t])
            else:
                from_own[l][t].copy_(h_prev[l])
            if l > 0:
                b = z_t[l - 1][t]
                torch.mul(h_t[l - 1][t], b, out=from_below[l][t])
                update = b if l == L - 1 else update.mul_(b)
                active = b if l == L - 1 else update + a
            s[l][t].addmm_(x[l][t], transposed[l])
            activated[l][t].sigmoid_()

            keep = f[l][t] * update
            if l > 0:
                keep.add_(1 - active)
            torch.mul(keep, c_prev[l], out=c_t[l][t])
            minus_fresh = torch.addcmul(i[l][t], i[l][t], g[l][t], value=-2)  # - i * tanh(s_g)
            if l > 0:
                c_t[l][t].addcmul_(minus_fresh, active, value=-1)
            else:
                c_t[l][t].sub_(minus_fresh)
            torch.mul(o[l][t], torch.tanh(c_t[l][t]), out=h_t[l][t])
            if l > 0:
                torch.lerp(h_prev[l], h_t[l][t], active, out=h_t[l][t])
            if l < L - 1:
                torch.heaviside(x_z[l][t], no, out=z_t[l][t])
                if l == 0 and must is not None:
                    torch.maximum(z_t[l][t], must[t], out=z_t[l][t])
        h_prev, c_prev, z_prev = [h_t[l][t] for l in range(L)], [c_t[l][t] for l in range(L)], [z[t] for z in z_t]


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


def multiscale_states(
    projection: Float[Tensor, "n gates"],
    weights: list[Tensor],
    biases: list[Tensor],
    slope: Float[Tensor, ""],
    packing: Packing,
    wiring: Wiring,
    forced: Bool[Tensor, " n"] | None = None,
) -> tuple[Float[Tensor, "n layers H"], Float[Tensor, "n detectors"]]:
    """States h of every layer and detector inputs x_z of every layer but the top, in flat order.

    `projection` is the bottom layer's input term with its bias; weights[l] (gates, sources * H) reads the sources of
    layer l; biases are those of the layers above the bottom. Where `forced`, z of the bottom layer is 1 whatever its
    detector says, and the detector gets no gradient.
    """
    if kernels := kernels_for(projection, *weights, slope):
        return multiscale(
            kernels, packing, projection, weights, biases, slope, forced, size=wiring.size, flush_own=wiring.flush_own
        )
    forced_rows = None if forced is None else forced.index_select(0, packing.order)
    outputs = _Scan.apply(  # type: ignore[no-untyped-call]
        projection.index_select(0, packing.order), slope, packing, wiring, forced_rows, *weights, *biases
    )
    flat = [output.index_select(0, packing.inverse) for output in outputs]
    return torch.stack(flat[: wiring.layers], dim=1), torch.cat(flat[wiring.layers :], dim=1)


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
        gates = [projection, *(bias.repeat(n, 1) for bias in biases)]
        inputs = [projection.new_empty(n, weight.shape[1]) for weight in weights]
        h = [projection.new_empty(n, H) for _ in range(L)]
        c = [projection.new_empty(n, H) for _ in range(L)]
        z = [projection.new_empty(n, 1) for _ in range(L - 1)]
        forward_scan(wiring, packing, weights, gates, inputs, h, c, z, forced)
        ctx.packing, ctx.wiring, ctx.forced = packing, wiring, forced
        ctx.save_for_backward(slope, *weights, *gates, *inputs, *h, *c, *z)
        x_z = [gates[l][:, 4 * H :].clone() for l in range(L - 1)]
        ctx.mark_non_differentiable(*x_z)
        return *h, *x_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        wiring, packing = ctx.wiring, ctx.packing
        L = wiring.layers
        slope, *saved = ctx.saved_tensors
        weights, gates, inputs, h, c = (saved[k * L : (k + 1) * L] for k in range(5))
        z = saved[5 * L :]
        d_projection = torch.empty_like(gates[0])
        d_weights = [torch.zeros_like(weight) for weight in weights]
        d_biases = [torch.zeros_like(weight[:, 0]) for weight in weights]
        carried = Carried.zeros(int(packing.batch_sizes[0]), weights, wiring)
        for stretch in reversed(stretches(packing)):
            layers = [Slopes.of(l, wiring, stretch, gates, h, c, z, slope, ctx.forced) for l in range(L)]
            backward_scan(wiring, stretch, weights, layers, gradients, carried)
            d_projection[stretch.rows] = layers[0].slopes
            for l, layer in enumerate(layers):
                d_weights[l].addmm_(layer.slopes.t(), inputs[l][stretch.rows])
                d_biases[l].add_(layer.slopes.sum(0))
        return d_projection, None, None, None, None, *d_weights, *d_biases[1:]
