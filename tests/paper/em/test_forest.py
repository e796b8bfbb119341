import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import GRU, LSTM
from emhrnn.paper.em.likelihood import forest_h
from emhrnn.paper.models.layers import attend_paths, pair_attention
from tests.layers.shapes import generator_of, hidden_sizes, offsets_of, seeds
from tests.oracles import attention as attention_oracle
from tests.oracles import recurrent as recurrent_oracle


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Level sizes and, for each node in level order, a parent of the level before."""
    sizes = draw(st.lists(st.integers(1, 20), min_size=1, max_size=6))
    parents = [-1] * sizes[0]
    start = 0
    for before, size in itertools.pairwise(sizes):
        parents += [start + draw(st.integers(0, before - 1)) for _ in range(size)]
        start += before
    return sizes, parents


@pytest.mark.parametrize("kind", [LSTM, GRU])
@settings(max_examples=20, deadline=None)
@given(forest=forests(), hidden=hidden_sizes, seed=seeds)
def test_states_and_gradients_equal_the_oracle(kind, forest, hidden, seed) -> None:
    sizes, parents = forest
    generator = generator_of(seed)
    layer = kind(4, hidden, generator=generator).double()
    x = torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    inputs = torch.randint(5, (len(parents),), generator=generator)
    seen = torch.randn(len(parents), hidden, generator=generator, dtype=torch.float64)
    leaves = [x, *layer.parameters()]

    fast = forest_h(layer, x, inputs, torch.tensor(parents), sizes)
    states = recurrent_oracle.forest_states(layer, x, inputs.tolist(), parents)
    slow = torch.stack([state[0] for state in states])
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(
        torch.autograd.grad((fast * seen).sum(), leaves), torch.autograd.grad((slow * seen).sum(), leaves)
    )
    with torch.no_grad():
        torch.testing.assert_close(forest_h(layer, x, inputs, torch.tensor(parents), np.array(sizes)), slow)


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_gradcheck(kind) -> None:
    layer = kind(2, 3, generator=generator_of(1)).double()
    x = torch.randn(3, 2, dtype=torch.float64, generator=generator_of(2), requires_grad=True)
    parents, inputs = torch.tensor([-1, -1, 0, 0, 1, 2]), torch.tensor([0, 1, 2, 0, 0, 1])
    names = [name for name, _ in layer.named_parameters()]
    weights = [parameter.detach().clone().requires_grad_() for parameter in layer.parameters()]

    def states(x: Tensor, *weights: Tensor) -> Tensor:
        with torch.nn.utils.stateless._reparametrize_module(layer, dict(zip(names, weights, strict=True))):
            return forest_h(layer, x, inputs, parents, [2, 3, 1])

    assert torch.autograd.gradcheck(states, (x, *weights))


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_a_forest_of_chains_is_a_packed_layer(kind) -> None:
    layer = kind(4, 6, generator=generator_of(0))
    order = Order(offsets_of([3, 5, 1]))
    x = torch.randn(9, 4, generator=generator_of(1))
    parents = torch.cat([torch.full((3,), -1), torch.from_numpy(order.previous)])
    h = forest_h(layer, x, torch.from_numpy(order.rows), parents, order.batch_sizes.tolist())
    torch.testing.assert_close(h[order.inverse], layer(x, order))


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_levels_longer_than_a_chunk(kind) -> None:
    layer = kind(2, 3, generator=generator_of(0))
    x = torch.randn(7, 2, generator=generator_of(1))
    sizes = [2, 5000, 4097]
    generator = generator_of(2)
    parents = torch.cat(
        [
            torch.full((2,), -1),
            torch.randint(0, 2, (5000,), generator=generator),
            torch.randint(2, 5002, (4097,), generator=generator),
        ]
    )
    inputs = torch.randint(7, (len(parents),), generator=generator)
    h = forest_h(layer, x, inputs, parents, sizes)
    parent = int(parents[-1])
    path = [int(parents[parent]), parent, len(parents) - 1]
    last = recurrent_oracle.forest_states(layer, x, [int(inputs[node]) for node in path], [-1, 0, 1])
    torch.testing.assert_close(h[-1], last[-1][0])


def test_attend_paths_picks_rows_by_index() -> None:
    h = torch.randn(6, 3, generator=generator_of(0), requires_grad=True)
    scores = torch.randn(6, generator=generator_of(1), requires_grad=True)
    offsets, index = torch.tensor([0, 2, 3, 7]), torch.tensor([5, 0, 0, 1, 5, 5, 2])
    slow = attention_oracle.attend(h[index], scores[index], offsets.tolist())[0]
    fast = attend_paths(h, scores, offsets, index)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(
        torch.autograd.grad(fast.square().sum(), [h, scores]), torch.autograd.grad(slow.square().sum(), [h, scores])
    )
    with torch.no_grad():
        torch.testing.assert_close(attend_paths(h, scores, offsets, index), slow)


@settings(max_examples=25, deadline=None)
@given(
    variants=st.lists(
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=9), min_size=1, max_size=6
    ),
    attention=hidden_sizes,
    classes=st.integers(1, 11),
    seed=seeds,
)
def test_pair_attention_equals_the_oracle(variants, attention, classes, seed) -> None:
    generator = generator_of(seed)
    left = torch.randn(5, attention + classes, generator=generator, requires_grad=True)
    right = torch.randn(4, attention + classes, generator=generator, requires_grad=True)
    context = torch.randn(attention, generator=generator, requires_grad=True)
    offsets = torch.from_numpy(offsets_of([len(pairs) for pairs in variants]))
    pairs = torch.tensor([pair for pairs in variants for pair in pairs])

    def fast() -> Tensor:
        return pair_attention(left, right, context, offsets, pairs[:, 0], pairs[:, 1])

    slow = attention_oracle.pair_attention(left, right, context, variants)
    torch.testing.assert_close(fast(), slow, atol=1e-5, rtol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(fast(), slow, atol=1e-5, rtol=1e-5)
    leaves = [left, right, context]
    torch.testing.assert_close(
        torch.autograd.grad(fast().square().sum(), leaves),
        torch.autograd.grad(slow.square().sum(), leaves),
        atol=1e-4,
        rtol=1e-4,
    )
