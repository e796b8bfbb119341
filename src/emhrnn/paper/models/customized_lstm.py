"""An LSTM whose matrices depend on the document: basis customisation of the encoder (Kim et al., TACL 2019).

[W(m) U(m)] = [W U] + sum_k beta_k(m) B_k        W of the input, U of the state; gates i f g o as in layers/cells.py

No document gets matrices of its own: each step multiplies by all bases at once and mixes the results with beta.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.layers.lstm import LSTM
from emhrnn.layers.packing import Packing


def customized_lstm(
    layer: LSTM,
    bases: Float[Tensor, "bases four_H D_plus_H"],
    beta: Float[Tensor, "documents bases"],
    x: Float[Tensor, "n D"],
    packing: Packing,
) -> Float[Tensor, "n H"]:
    """One sequence per document."""
    D, H = x.shape[1], layer.hidden_size
    shares = torch.cat([torch.ones_like(beta[:, :1]), beta], dim=1)  # 1 for W and U themselves
    of_row = shares.repeat_interleave(packing.lengths, dim=0).index_select(0, packing.order)  # (n, 1 + bases) packed
    inputs = _stacked(layer.input_weight, bases[:, :, :D])  # (D, (1 + bases) 4H)
    states = _stacked(layer.state_weight, bases[:, :, D:])  # (H, (1 + bases) 4H)
    projected = _mixed(x.index_select(0, packing.order) @ inputs, of_row) + layer.bias  # (n, 4H)
    sizes = packing.batch_sizes.tolist()
    h = c = x.new_zeros(sizes[0], H)
    steps = []
    for gates, share in zip(torch.split(projected, sizes), torch.split(of_row, sizes), strict=True):
        h, c = h[: len(gates)], c[: len(gates)]
        i, f, g, o = (gates + _mixed(h @ states, share)).chunk(4, dim=1)
        c = torch.sigmoid(i) * torch.tanh(g) + torch.sigmoid(f) * c
        h = torch.sigmoid(o) * torch.tanh(c)
        steps.append(h)
    return torch.cat(steps).index_select(0, packing.inverse)


def _stacked(
    weight: Float[Tensor, "four_H inputs"], bases: Float[Tensor, "bases four_H inputs"]
) -> Float[Tensor, "inputs all_rows"]:
    return torch.cat([weight[None], bases]).flatten(0, 1).t()


def _mixed(
    products: Float[Tensor, "n all_rows"], shares: Float[Tensor, "n one_plus_bases"]
) -> Float[Tensor, "n four_H"]:
    return torch.bmm(shares[:, None], products.view(len(shares), shares.shape[1], -1)).squeeze(1)
