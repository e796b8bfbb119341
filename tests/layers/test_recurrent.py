"""LSTM and GRU against the word-by-word oracles, torch.nn and numerical gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import GRU, LSTM, Bidirectional
from tests.layers.shapes import generator_of, hidden_sizes, lengths, offsets_of, seeds
from tests.oracles.recurrent import layer_states


@pytest.mark.parametrize("kind", [LSTM, GRU])
@settings(max_examples=25, deadline=None)
@given(lengths=lengths, hidden=hidden_sizes, reverse=st.booleans(), seed=seeds)
def test_states_and_gradients_equal_the_oracle(kind, lengths, hidden, reverse, seed) -> None:
    generator = generator_of(seed)
    layer = kind(5, hidden, generator=generator).double()
    offsets = offsets_of(lengths)
    x = torch.randn(int(offsets[-1]), 5, generator=generator, dtype=torch.float64, requires_grad=True)
    seen = torch.randn(len(x), hidden, generator=generator, dtype=torch.float64)
    inputs = [x, *layer.parameters()]

    fast = layer(x, Order(offsets, reverse=reverse))
    slow = layer_states(layer, x, offsets.tolist(), reverse=reverse)
    torch.testing.assert_close(fast, slow)
    for ours, theirs in zip(
        torch.autograd.grad((fast * seen).sum(), inputs),
        torch.autograd.grad((slow * seen).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kind", [LSTM, GRU])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradcheck(kind, reverse: bool) -> None:
    layer = kind(3, 4, generator=generator_of(1)).double()
    order = Order(offsets_of([3, 1, 4]), reverse=reverse)
    x = torch.randn(8, 3, dtype=torch.float64, generator=generator_of(2), requires_grad=True)
    weights = [parameter.detach().clone().requires_grad_() for parameter in layer.parameters()]
    names = [name for name, _ in layer.named_parameters()]

    def states(x: Tensor, *weights: Tensor) -> Tensor:
        return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (x, order))

    assert torch.autograd.gradcheck(states, (x, *weights))


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_gradcheck_of_projected_inputs(kind) -> None:
    layer = kind(3, 2, generator=generator_of(1)).double()
    table = torch.randn(5, len(layer.bias), dtype=torch.float64, generator=generator_of(2), requires_grad=True)
    index = torch.tensor([4, 0, 0, 2, 4, 1])
    order = Order(offsets_of([2, 4]))
    assert torch.autograd.gradcheck(lambda table: layer.forward_projected(table, order, index), (table,))


def torch_lstm(lstm: LSTM) -> nn.LSTM:
    theirs = nn.LSTM(lstm.input_weight.shape[1], lstm.hidden_size)
    with torch.no_grad():
        for parameter, value in zip(
            theirs.parameters(), [lstm.input_weight, lstm.state_weight, lstm.bias, 0 * lstm.bias], strict=True
        ):
            parameter.copy_(value)
    return theirs


def torch_gru(gru: GRU) -> nn.GRU:
    """torch's update gate is 1 - u."""
    H = gru.hidden_size
    theirs = nn.GRU(gru.input_weight.shape[1], H)
    with torch.no_grad():
        for parameter, value in zip(
            theirs.parameters(), [gru.input_weight, gru.state_weight, gru.bias, 0 * gru.bias], strict=True
        ):
            parameter.copy_(value)
            parameter[H : 2 * H].neg_()
    return theirs


@pytest.mark.parametrize(("kind", "twin"), [(LSTM, torch_lstm), (GRU, torch_gru)])
@settings(max_examples=15, deadline=None)
@given(lengths=lengths, hidden=hidden_sizes, seed=seeds)
def test_equals_torch_nn(kind, twin, lengths, hidden, seed) -> None:
    check_against_torch_nn(kind, twin, lengths, hidden, seed)


@pytest.mark.parametrize(("kind", "twin"), [(LSTM, torch_lstm), (GRU, torch_gru)])
def test_sentences_of_1_to_300_words(kind, twin) -> None:
    check_against_torch_nn(kind, twin, [*range(1, 301, 13), 300], 50, 3)


def check_against_torch_nn(kind, twin, lengths: list[int], hidden: int, seed: int) -> None:
    generator = generator_of(seed)
    layer = kind(6, hidden, generator=generator)
    offsets = offsets_of(lengths)
    x = torch.randn(int(offsets[-1]), 6, generator=generator)
    ours = layer(x, Order(offsets))
    packed, _ = twin(layer)(pack_sequence(list(x.split(lengths)), enforce_sorted=False))
    padded, _ = pad_packed_sequence(packed, batch_first=True)
    theirs = torch.cat([rows[:length] for rows, length in zip(padded, lengths, strict=True)])
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_bidirectional_reads_both_ways(kind) -> None:
    generator = generator_of(0)
    layer = Bidirectional(kind(3, 4, generator=generator), kind(3, 5, generator=generator))
    offsets = offsets_of([4, 1, 2])
    x = torch.randn(7, 3, generator=generator)
    h = layer(x, offsets)
    assert h.shape == (7, layer.hidden_size)
    torch.testing.assert_close(h[:, :4], layer.forward_layer(x, Order(offsets)))
    torch.testing.assert_close(h[:, 4:], layer.backward_layer(x, Order(offsets, reverse=True)))


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_projection_table_equals_projecting_each_word(kind) -> None:
    layer = kind(3, 4, generator=generator_of(0))
    vocabulary = torch.randn(9, 3, generator=generator_of(1))
    words = torch.tensor([8, 0, 3, 3, 1])
    order = Order(offsets_of([3, 2]))
    table = layer.project(vocabulary)
    kept = table.clone()
    h = layer.forward_projected(table, order, words)
    torch.testing.assert_close(h, layer(vocabulary[words], order))
    torch.testing.assert_close(h, layer.forward_projected(table[words], order))
    assert torch.equal(table, kept)


def test_frozen_inputs_get_no_gradient_and_weights_do() -> None:
    lstm = LSTM(3, 4, generator=generator_of(0))
    lstm(torch.ones(5, 3), Order(offsets_of([5]))).sum().backward()
    assert all(parameter.grad is not None for parameter in lstm.parameters())


def test_initial_values() -> None:
    lstm = LSTM(3, 4, generator=generator_of(0))
    assert lstm.bias.tolist() == [0] * 4 + [1] * 4 + [0] * 8
    again = LSTM(3, 4, generator=generator_of(0))
    assert torch.equal(lstm.input_weight, again.input_weight)
    assert not torch.equal(lstm.input_weight, LSTM(3, 4, generator=generator_of(1)).input_weight)
    assert GRU(3, 4, generator=generator_of(0)).state_weight.abs().max() <= 0.5
