"""Attention over nodes [h; x] that are never put together, against the same over rows that are."""

import shutil
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings

from emhrnn.layers import AttentionPool
from emhrnn.layers.native import kernels, native_kernels
from emhrnn.layers.path_attention import attend_path_pairs
from tests.layers.shapes import generator_of, hidden_sizes, seeds
from tests.oracles.em_hrnn import pool

HAS_COMPILER = any(map(shutil.which, ("c++", "g++", "clang++")))
NEEDS_COMPILER = pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler")


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=NEEDS_COMPILER)])
@settings(max_examples=20, deadline=None)
@given(hidden=hidden_sizes, seed=seeds)
def test_equals_the_oracle_with_and_without_gradients(native, hidden, seed) -> None:
    generator = generator_of(seed)
    attention = AttentionPool(hidden + 4, 3, generator=generator)
    h, x = torch.randn(6, hidden, generator=generator), torch.randn(5, 4, generator=generator)
    inputs = torch.randint(5, (6,), generator=generator)
    lengths = torch.randint(1, 5, (3,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    index = torch.randint(6, (int(offsets[-1]),), generator=generator)
    paths = [index[a:b].tolist() for a, b in pairwise(offsets)]
    expected = torch.stack([pool(attention, [torch.cat([h[i], x[inputs[i]]]) for i in path]) for path in paths])
    with native_kernels(native):
        assert (kernels() is not None) == native
        differentiable = attend_path_pairs(attention, h, x, inputs, offsets, index)
        with torch.no_grad():
            plain = attend_path_pairs(attention, h, x, inputs, offsets, index)
    assert differentiable.requires_grad
    torch.testing.assert_close(differentiable, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(plain, expected.detach(), rtol=1e-4, atol=1e-5)
