import shutil
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from emhrnn.layers.native import kernels, native_kernels
from emhrnn.paper.models.layers import AttentionPool, attend, attend_path_pairs
from tests.layers.shapes import generator_of, hidden_sizes, lengths, offsets_of, seeds
from tests.oracles import attention as oracle
from tests.oracles.em_hrnn import pool


@settings(max_examples=40, deadline=None)
@given(lengths=lengths, hidden=hidden_sizes, seed=seeds)
def test_equals_one_softmax_per_segment(lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    offsets = torch.from_numpy(offsets_of(lengths))
    n = int(offsets[-1])
    h = torch.randn(n, hidden, generator=generator, requires_grad=True)
    scores = (5 * torch.randn(n, generator=generator)).requires_grad_()
    seen = torch.randn(len(lengths), hidden, generator=generator), torch.randn(n, generator=generator)

    fast = attend(h, scores, offsets)
    slow = oracle.attend(h, scores, offsets.tolist())
    gradients = [
        torch.autograd.grad((pooled * seen[0]).sum() + (weights * seen[1]).sum(), [h, scores])
        for pooled, weights in (fast, slow)
    ]
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(*gradients, atol=2e-5, rtol=1e-4)


def test_gradcheck() -> None:
    offsets = torch.tensor([0, 3, 3, 4, 9])  # one segment is empty
    h = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(9, dtype=torch.float64, requires_grad=True)

    def both(h: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        return attend(h, scores, offsets)

    assert torch.autograd.gradcheck(both, (h, scores))
    assert torch.equal(both(h, scores)[0][1], torch.zeros(3, dtype=torch.float64))


def test_each_segment_has_its_own_maximum() -> None:
    """With one maximum for the whole batch, the second segment's exponentials would all be zero."""
    scores = torch.tensor([1000.0, 1001.0, -1000.0, -1000.0])
    pooled, weights = attend(torch.eye(4), scores, torch.tensor([0, 2, 4]))
    torch.testing.assert_close(weights, torch.tensor([0.26894, 0.73106, 0.5, 0.5]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(pooled.sum(1), torch.ones(2))


def test_the_pool_scores_with_its_context() -> None:
    pool = AttentionPool(4, 3, generator=generator_of(0))
    h = torch.randn(6, 4, generator=generator_of(1))
    offsets = torch.tensor([0, 2, 6])
    scores = torch.stack([pool.context @ torch.tanh(pool.weight @ row + pool.bias) for row in h])
    torch.testing.assert_close(pool.scores(h), scores)
    torch.testing.assert_close(pool(h, offsets), oracle.attend(h, scores, offsets.tolist()))


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
