import itertools

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.layers import LSTM, forest_lstm, forest_states, lstm_pass, pack, row_dots
from emhrnn.layers.native import native_kernels
from tests.layers.shapes import generator_of, hidden_sizes, offsets_of, seeds


def run(lstm, x, h, c):
    """States behind each row, from a given one."""
    states = []
    for row in x:
        i, f, g, o = (lstm.input_weight @ row + lstm.state_weight @ h + lstm.bias).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append((h, c))
    return states


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), hidden_sizes, seeds)
def test_slopes_of_the_states_handed_on(lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    lstm = LSTM(4, hidden, generator=generator).double()
    offsets = offsets_of(lengths)
    x, dh = (torch.randn(sum(lengths), n, generator=generator, dtype=torch.float64) for n in (4, hidden))
    slopes = lstm_pass(lstm, x, pack(offsets)).state_slopes(dh)
    for begin, end in itertools.pairwise(offsets):
        zeros = x.new_zeros(hidden)
        states = run(lstm, x[begin:end].detach(), zeros, zeros)
        for row, state in enumerate(states, start=int(begin)):
            h, c = (part.detach().requires_grad_() for part in state)
            later = [rest[0] @ d for rest, d in zip(run(lstm, x[row + 1 : end], h, c), dh[row + 1 : end], strict=True)]
            expected = torch.autograd.grad(sum(later), (h, c)) if later else (zeros, zeros)
            torch.testing.assert_close((slopes[0][row], slopes[1][row]), expected)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), hidden_sizes, seeds)
def test_both_back_ends_agree(lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    lstm = LSTM(4, hidden, generator=generator)
    x, dh = (torch.randn(sum(lengths), n, generator=generator) for n in (4, hidden))
    rows = torch.randint(len(x), (50,), generator=generator)
    order = pack(offsets_of(lengths))
    forest = x, order.order, torch.cat([torch.full((len(lengths),), -1), order.previous]), order.batch_sizes.tolist()
    results = []
    for native in (True, False):
        with native_kernels(native):
            h, c = forest_states(lstm, *forest)
            done = lstm_pass(lstm, x, order)
            torch.testing.assert_close(done.h, lstm(x, order).detach())
            results.append(
                (*done.state_slopes(dh), *done.slopes(dh), done.cells, row_dots(dh, rows, dh, rows.flip(0)), h, c)
            )
            torch.testing.assert_close(h, forest_lstm(lstm, *forest).detach())
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), hidden_sizes, seeds, st.booleans())
def test_slopes_of_inputs_are_those_of_the_layer(lengths, hidden, seed, reverse) -> None:
    generator = generator_of(seed)
    lstm = LSTM(4, hidden, generator=generator)
    packing = pack(offsets_of(lengths), reverse=reverse)
    x, dh = (torch.randn(sum(lengths), n, generator=generator) for n in (4, hidden))
    dx, *states = lstm_pass(lstm, x, packing).slopes(dh)
    x.requires_grad_()
    torch.testing.assert_close(dx, torch.autograd.grad((lstm(x, packing) * dh).sum(), x)[0])
    torch.testing.assert_close(tuple(states), lstm_pass(lstm, x.detach(), packing).state_slopes(dh))
