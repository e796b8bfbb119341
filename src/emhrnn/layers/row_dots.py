"""Inner products of rows, picked by number, without gathering them."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers.native import kernels_for


@torch.no_grad()
def row_dots(
    a: Float[Tensor, "m H"], a_rows: Int64[Tensor, " n"], b: Float[Tensor, "k H"], b_rows: Int64[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """a[a_rows[i]] . b[b_rows[i]] for each i."""
    if kernels := kernels_for(a, b):
        return kernels.row_dots(a.contiguous(), a_rows.contiguous(), b.contiguous(), b_rows.contiguous())
    return (a.index_select(0, a_rows) * b.index_select(0, b_rows)).sum(1)
