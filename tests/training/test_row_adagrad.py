"""Against torch's Adagrad on dense gradients, where rows that a step does not touch have gradient zero."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from emhrnn.layers.native import native_kernels
from emhrnn.training.optimizer import TINY, RowAdagrad


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_equals_adagrad(steps: list[list[int]], seed: int, native: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(6, 3, generator=generator)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    sparse = RowAdagrad([{"params": [ours]}], lr=0.1)
    dense = torch.optim.Adagrad([theirs], lr=0.1, eps=TINY)
    for rows in steps:
        values = torch.randn(len(rows), 3, generator=generator)
        ours.grad = torch.sparse_coo_tensor(torch.tensor([rows]), values, ours.shape, check_invariants=True).coalesce()
        theirs.grad = ours.grad.to_dense()
        before = ours._version
        with native_kernels(native):
            sparse.step()
        assert ours._version > before  # what is computed from the table and kept must notice
        dense.step()
    torch.testing.assert_close(ours, theirs)


def test_without_a_gradient_nothing_moves() -> None:
    table = nn.Parameter(torch.ones(2, 2))
    optimizer = RowAdagrad([{"params": [table]}], lr=0.1)
    optimizer.step()
    assert not optimizer.state
    assert (table == 1).all()
