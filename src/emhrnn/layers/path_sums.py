r"""What attention adds up along every path of a forest, without keeping its states.

    a -> b -> c        of node c:   weights w_a + w_b + w_c,        w = exp(score - shift of the tree)
      -> d             values w_a < g, h_a > + w_b < g, h_b > + w_c < g, h_c >,       g: one direction per tree

With `skip` a node is [h; x], its state beside its input, to the attention and to g.

A node's sums are those of its parent and one term more, so a path costs no more than its last node. Sums are in double
precision: no weight leaves the range of numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from emhrnn.layers.attention import AttentionPool
from emhrnn.layers.cells import States
from emhrnn.layers.forest import forest_states
from emhrnn.layers.linear import linear
from emhrnn.layers.native import kernels_for
from emhrnn.layers.recurrent import Recurrent
from emhrnn.layers.row_dots import row_dots


@dataclass(frozen=True, eq=False)
class Probe:
    """What the states are read with: by each tree, and by each row of slopes that an end of a path may name."""

    g: Float[Tensor, "trees features"]  # H, or H + D of nodes with their inputs
    shift: Float64[Tensor, " trees"]
    slopes: States  # (k, H) each, one for each state of the layer


@torch.no_grad()
def path_sums(
    layer: Recurrent,
    attention: AttentionPool,
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: Int64[np.ndarray, " levels"] | Sequence[int],
    trees: Int64[Tensor, " n"],
    ends: Int64[Tensor, " n"],
    probe: Probe,
    *,
    skip: bool = False,
) -> tuple[Float64[Tensor, " n"], Float64[Tensor, " n"], Float[Tensor, " n"]]:
    """For every node, the sums of weights and of values from its root to it; and where ends >= 0, what its states
    are along that row of the slopes (zero elsewhere)."""
    sizes = [int(size) for size in level_sizes]
    if kernels := kernels_for(x, layer.state_weight):
        projection, H = layer.project(x), layer.hidden_size
        weight, bias, context = (
            tensor.contiguous() for tensor in (attention.weight[:, :H], attention.bias, attention.context)
        )
        beside = linear(x, attention.weight[:, H:].contiguous()) if skip else None
        return kernels.forest_path_sums(
            layer.cell.name, sizes, inputs, parents, projection, layer.state_weight.contiguous(),
            x.contiguous() if skip else None, beside, weight, bias, context, trees, probe.g, probe.shift, ends,
            probe.slopes,
        )  # fmt: skip
    states = forest_states(layer, x, inputs, parents, sizes)
    h = states[0]
    node = torch.cat([h, x[inputs]], dim=1) if skip else h
    weights = torch.exp(attention.scores(node).double() - probe.shift[trees])
    values = weights * row_dots(node, torch.arange(len(h)), probe.g, trees)
    end = sum(sizes[:1])
    for size in sizes[1:]:
        rows = slice(end, end + size)
        for sums in (weights, values):
            sums[rows] += sums[parents[rows]]
        end += size
    along = torch.zeros_like(h[:, 0])
    some = torch.nonzero(ends >= 0).squeeze(1)
    for state, slope in zip(states, probe.slopes, strict=True):
        along[some] += row_dots(state, some, slope, ends[some])
    return weights, values, along
