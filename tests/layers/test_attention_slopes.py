import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.layers import AttentionPool
from emhrnn.layers.attention_slopes import attention_pass
from emhrnn.layers.native import native_kernels
from tests.layers.shapes import generator_of, hidden_sizes, offsets_of, seeds


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), hidden_sizes, seeds, st.booleans())
def test_slopes_are_those_of_autograd(lengths: list[int], hidden: int, seed: int, native: bool) -> None:
    generator = generator_of(seed)
    pool = AttentionPool(hidden, 5, generator=generator)
    offsets = torch.as_tensor(offsets_of(lengths))
    h, d_pooled = (torch.randn(n, hidden, generator=generator) for n in (sum(lengths), len(lengths)))
    with native_kernels(native):
        done = attention_pass(pool, h, offsets)
        slopes = done.slopes(d_pooled)
        h.requires_grad_()
        pooled, weights = pool(h, offsets)
    torch.testing.assert_close((done.pooled, done.weights), (pooled.detach(), weights.detach()))
    torch.testing.assert_close(slopes, torch.autograd.grad(pooled, h, d_pooled)[0])
    assert not slopes.requires_grad
