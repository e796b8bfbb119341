"""Sums along the paths of a forest, on both back ends, against paths walked one by one."""

import shutil

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.layers import GRU, LSTM, AttentionPool, Probe, path_sums
from emhrnn.layers.native import kernels, native_kernels
from tests.layers.shapes import generator_of, hidden_sizes, seeds
from tests.layers.test_forest import forests
from tests.oracles.recurrent import forest_states, zero_state

HAS_COMPILER = any(map(shutil.which, ("c++", "g++", "clang++")))


def root(parents: list[int], node: int) -> int:
    return node if parents[node] < 0 else root(parents, parents[node])


NEEDS_COMPILER = pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler")


@pytest.mark.parametrize("kind", [LSTM, GRU])
@pytest.mark.parametrize("native", [False, pytest.param(True, marks=NEEDS_COMPILER)])
@settings(max_examples=12, deadline=None)
@given(forest=forests(), hidden=hidden_sizes, skip=st.booleans(), seed=seeds)
def test_equal_the_oracle(native, kind, forest, hidden, skip, seed) -> None:
    sizes, parents = forest
    n, generator = len(parents), generator_of(seed)
    layer, features = kind(4, hidden, generator=generator), hidden + 4 * skip
    attention = AttentionPool(features, 3, generator=generator)
    x = torch.randn(5, 4, generator=generator)
    inputs = torch.randint(5, (n,), generator=generator)
    trees = torch.tensor([root(parents, node) for node in range(n)])
    ends = torch.randint(-1, 4, (n,), generator=generator)
    probe = Probe(
        torch.randn(sizes[0], features, generator=generator),
        torch.randn(sizes[0], generator=generator).double(),
        tuple(torch.randn(4, hidden, generator=generator) for _ in zero_state(layer)),
    )
    with native_kernels(native), torch.no_grad():
        assert (kernels() is not None) == native
        forest_arguments = inputs, torch.tensor(parents), sizes, trees, ends
        weights, values, along = path_sums(layer, attention, x, *forest_arguments, probe, skip=skip)
        states = forest_states(layer, x, inputs.tolist(), parents)
        pooled = [torch.cat([h, x[i]]) if skip else h for (h, *_), i in zip(states, inputs, strict=True)]
    for node in range(n):
        weight = value = 0.0
        at = node
        while at >= 0:
            score = torch.tanh(attention.weight @ pooled[at] + attention.bias) @ attention.context
            w = (score.double() - probe.shift[trees[node]]).exp().item()
            weight, value = weight + w, value + w * (probe.g[trees[node]] @ pooled[at]).item()
            at = parents[at]
        assert weights[node].item() == pytest.approx(weight, rel=1e-4)
        assert values[node].item() == pytest.approx(value, rel=1e-3, abs=1e-4)
        along_states = sum(slope[ends[node]] @ state for slope, state in zip(probe.slopes, states[node], strict=True))
        expected = along_states.item() if ends[node] >= 0 else 0.0
        assert along[node].item() == pytest.approx(expected, rel=1e-3, abs=1e-4)


@NEEDS_COMPILER
def test_a_wrong_end_and_missing_slopes_are_errors() -> None:
    generator = generator_of(0)
    lstm, attention = LSTM(4, 6, generator=generator), AttentionPool(6, 3, generator=generator)
    x, inputs = torch.randn(3, 4, generator=generator), torch.tensor([0, 1, 2, 0])
    rest = torch.tensor([-1, 0, 0, 1]), [1, 2, 1], torch.zeros(4, dtype=torch.int64)
    g, *slopes = torch.randn(3, 2, 6, generator=generator)
    probe = Probe(g[:1], torch.zeros(1).double(), tuple(slopes))
    half = Probe(g[:1], torch.zeros(1).double(), tuple(slopes[:1]))
    with native_kernels(True), pytest.raises(IndexError, match="row numbers"):
        path_sums(lstm, attention, x, inputs, *rest, torch.tensor([0, 1, -1, 2]), probe)
    with native_kernels(True), pytest.raises(IndexError, match="1 slopes for the 2 states of lstm"):
        path_sums(lstm, attention, x, inputs, *rest, torch.tensor([0, 1, -1, 1]), half)
