"""Attention along the paths of a forest whose nodes are [h; x]: a state beside the input that it read.

Many nodes read the same input, and a path is a list of nodes; so what is linear in x is computed once for each input,
and without gradients no row [h; x] is ever put together.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers.attention import AttentionPool, segment_softmax, segments, weighted_sums
from emhrnn.layers.cells import tanh_
from emhrnn.layers.forest import attend_paths
from emhrnn.layers.linear import linear


def attend_path_pairs(
    attention: AttentionPool,
    h: Float[Tensor, "n H"],
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    offsets: Int64[Tensor, " k_plus_1"],
    index: Int64[Tensor, " entries"],
) -> Float[Tensor, "k H_plus_D"]:
    """Pools the rows [h[i]; x[inputs[i]]] of i in index[offsets[j] : offsets[j + 1]], for each j."""
    if torch.is_grad_enabled() and (h.requires_grad or x.requires_grad or attention.weight.requires_grad):
        node = torch.cat([h, x.index_select(0, inputs)], dim=1)
        return attend_paths(node, attention.scores(node), offsets, index)
    H = h.shape[1]
    u = linear(h, attention.weight[:, :H], attention.bias)  # (n, A)
    u += linear(x, attention.weight[:, H:]).index_select(0, inputs)
    scores = tanh_(u) @ attention.context
    weights = segment_softmax(scores.index_select(0, index), offsets, segments(offsets))
    of_x = weighted_sums(x, weights, offsets, inputs.index_select(0, index))
    return torch.cat([weighted_sums(h, weights, offsets, index), of_x], dim=1)
