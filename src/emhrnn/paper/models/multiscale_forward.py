"""The forward pass of the multiscale LSTM over packed rows, word by word; the equations are in multiscale_lstm.py."""

from collections.abc import Sequence

import torch
from torch import Tensor

from emhrnn.layers.packing import Packing
from emhrnn.paper.models.multiscale_wiring import Wiring


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
