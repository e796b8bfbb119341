import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.layers.linear import row_dots
from emhrnn.layers.native import native_kernels
from emhrnn.layers.packing import pack
from emhrnn.layers.recurrent import GRU, LSTM
from emhrnn.paper.layers.attention import AttentionPool
from emhrnn.paper.layers.forest import forest_h
from emhrnn.paper.layers.slopes import attention_pass, layer_pass
from tests.layers.shapes import generator_of, hidden_sizes, offsets_of, seeds
from tests.oracles.recurrent import step, zero_state

CELLS = pytest.mark.parametrize("kind", [LSTM, GRU])


def run(layer, x, state):
    """States behind each row, from a given one."""
    states = []
    for row in x:
        state = step(layer, row, *state)
        states.append(state)
    return states


@CELLS
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), hidden_sizes, seeds)
def test_slopes_of_the_states_handed_on(kind, lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    layer = kind(4, hidden, generator=generator).double()
    offsets = offsets_of(lengths)
    x, dh = (torch.randn(sum(lengths), n, generator=generator, dtype=torch.float64) for n in (4, hidden))
    slopes = layer_pass(layer, x, pack(offsets)).state_slopes(dh)
    for begin, end in itertools.pairwise(offsets):
        zeros = zero_state(layer)
        for row, state in enumerate(run(layer, x[begin:end], zeros), start=int(begin)):
            state = tuple(part.detach().requires_grad_() for part in state)
            rest = run(layer, x[row + 1 : end], state)
            later = [after[0] @ d for after, d in zip(rest, dh[row + 1 : end], strict=True)]
            expected = torch.autograd.grad(sum(later), state) if later else zeros
            torch.testing.assert_close(tuple(slope[row] for slope in slopes), expected)


@CELLS
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), hidden_sizes, seeds)
def test_both_back_ends_agree(kind, lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    layer = kind(4, hidden, generator=generator)
    x, dh = (torch.randn(sum(lengths), n, generator=generator) for n in (4, hidden))
    rows = torch.randint(len(x), (50,), generator=generator)
    order = pack(offsets_of(lengths))
    forest = x, order.order, torch.cat([torch.full((len(lengths),), -1), order.previous]), order.batch_sizes.tolist()
    results = []
    for native in (True, False):
        with native_kernels(native):
            done = layer_pass(layer, x, order)
            torch.testing.assert_close(done.h, layer(x, order).detach())
            torch.testing.assert_close(done.h, forest_h(layer, *forest).detach()[order.inverse])
            dots = row_dots(dh, rows, dh, rows.flip(0))
            results.append((*done.state_slopes(dh), *done.slopes(dh), *done.states, dots))
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)


@CELLS
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), hidden_sizes, seeds, st.booleans())
def test_slopes_of_inputs_are_those_of_the_layer(kind, lengths, hidden, seed, reverse) -> None:
    generator = generator_of(seed)
    layer = kind(4, hidden, generator=generator)
    packing = pack(offsets_of(lengths), reverse=reverse)
    x, dh = (torch.randn(sum(lengths), n, generator=generator) for n in (4, hidden))
    dx, *states = layer_pass(layer, x, packing).slopes(dh)
    x.requires_grad_()
    torch.testing.assert_close(dx, torch.autograd.grad((layer(x, packing) * dh).sum(), x)[0])
    torch.testing.assert_close(tuple(states), layer_pass(layer, x.detach(), packing).state_slopes(dh))


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
