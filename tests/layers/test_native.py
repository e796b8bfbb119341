"""The native kernels against the torch layers, which the other tests hold against the oracles."""

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from emhrnn.layers import native as native_package
from emhrnn.layers.linear import linear
from emhrnn.layers.native import kernels, native_kernels
from emhrnn.layers.native.torch_kernels import check_columns, check_gates
from emhrnn.layers.order import Order
from emhrnn.layers.recurrent import GRU, LSTM, LearnedRows
from emhrnn.paper.em.likelihood import forest_h
from emhrnn.paper.models.layers import AttentionPool, attend, attend_paths, pair_attention
from tests.back_ends import check_threads_change_no_bit
from tests.layers.shapes import generator_of, hidden_sizes, offsets_of, seeds
from tests.paper.em.test_forest import forests

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler, so only the torch layers exist"
)

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=40)  # several groups of sequences
CLOSE = {"atol": 1e-5, "rtol": 1e-5}


def check(run: Callable[[], Tensor], leaves: list[Tensor], seed: int = 0) -> None:
    """Equal results and gradients on both back ends, and results that do not depend on gradients being wanted."""
    assert kernels() is not None
    results, gradients = [], []
    for native in (True, False):
        with native_kernels(native):
            result = run()
            seen = torch.randn(result.shape, generator=generator_of(seed))
            gradients.append(torch.autograd.grad((result * seen).sum(), leaves))
            with torch.no_grad():
                torch.testing.assert_close(run(), result.detach(), **CLOSE)
            results.append(result.detach())
    torch.testing.assert_close(*results, **CLOSE)
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", [LSTM, GRU])
@settings(max_examples=40, deadline=None)
@given(lengths=lengths, sizes=st.tuples(hidden_sizes, hidden_sizes), reverse=st.booleans(), seed=seeds)
def test_recurrent_layers(kind, lengths, sizes, reverse, seed) -> None:
    generator = generator_of(seed)
    layer = kind(*sizes, generator=generator)
    offsets = offsets_of(lengths)
    x = torch.randn(int(offsets[-1]), sizes[0], generator=generator, requires_grad=True)
    check(lambda: layer(x, Order(offsets, reverse=reverse)), [x, *layer.parameters()])
    check(lambda: layer(x.detach(), Order(offsets, reverse=reverse)), list(layer.parameters()))


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_sentences_of_1_to_300_words(kind) -> None:
    layer = kind(20, 50, generator=generator_of(0))
    offsets = offsets_of([*range(1, 301, 13), 300])
    x = torch.randn(int(offsets[-1]), 20, generator=generator_of(1), requires_grad=True)
    check(lambda: layer(x, Order(offsets)), [x, *layer.parameters()])


@pytest.mark.parametrize("kind", [LSTM, GRU])
@settings(max_examples=20, deadline=None)
@given(lengths=lengths, hidden=hidden_sizes, seed=seeds)
def test_learned_rows(kind, lengths, hidden, seed) -> None:
    """The gradient of some rows is that of the whole input at these rows."""
    generator = generator_of(seed)
    layer = kind(5, hidden, generator=generator)
    order = Order(offsets_of(lengths))
    x = torch.randn(order.n_rows, 5, generator=generator)
    rows = torch.randperm(len(x), generator=generator)[: len(x) // 3]
    vectors = x[rows].requires_grad_()
    check(lambda: layer(x, order, LearnedRows(rows, vectors)), [vectors, *layer.parameters()])
    dense = x.clone().requires_grad_()
    seen = torch.randn(len(x), hidden, generator=generator)
    (every,) = torch.autograd.grad((layer(dense, order) * seen).sum(), dense)
    (some,) = torch.autograd.grad((layer(x, order, LearnedRows(rows, vectors)) * seen).sum(), vectors)
    torch.testing.assert_close(some, every[rows], **CLOSE)


@pytest.mark.parametrize("kind", [LSTM, GRU])
@settings(max_examples=20, deadline=None)
@given(lengths=lengths, hidden=hidden_sizes, seed=seeds)
def test_projected_inputs(kind, lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    layer = kind(3, hidden, generator=generator)
    table = torch.randn(7, len(layer.bias), generator=generator, requires_grad=True)
    order = Order(offsets_of(lengths))
    words = torch.randint(7, (sum(lengths),), generator=generator)
    check(lambda: layer.forward_projected(table, order, words), [table, layer.state_weight])
    rows = table.detach()[words].requires_grad_()
    check(lambda: layer.forward_projected(rows, order), [rows, layer.state_weight])


@pytest.mark.parametrize("kind", [LSTM, GRU])
@settings(max_examples=20, deadline=None)
@given(forest=forests(), hidden=hidden_sizes, seed=seeds)
def test_forest(kind, forest, hidden, seed) -> None:
    level_sizes, parents = forest
    generator = generator_of(seed)
    layer = kind(4, hidden, generator=generator)
    x = torch.randn(5, 4, generator=generator, requires_grad=True)
    inputs = torch.randint(5, (len(parents),), generator=generator)
    check(lambda: forest_h(layer, x, inputs, torch.tensor(parents), level_sizes), [x, *layer.parameters()])


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_gradients_of_the_input_alone(kind) -> None:
    """The kernels skip those of the weights when nobody asks for them."""
    layer, pool = kind(4, 5, generator=generator_of(0)), AttentionPool(5, 3, generator=generator_of(1))
    for parameter in (*layer.parameters(), *pool.parameters()):
        parameter.requires_grad_(False)
    offsets = offsets_of([3, 7, 1])
    x = torch.randn(11, 4, generator=generator_of(2), requires_grad=True)
    check(lambda: layer(x, Order(offsets)), [x])
    check(lambda: pool(layer(x, Order(offsets)), torch.from_numpy(offsets))[0], [x])


@settings(max_examples=20, deadline=None)
@given(n=st.integers(0, 30), sizes=st.tuples(hidden_sizes, hidden_sizes), seed=seeds)
def test_linear(n, sizes, seed) -> None:
    generator = generator_of(seed)
    shapes = (n, sizes[0]), (sizes[1], sizes[0]), (sizes[1],)
    x, weight, bias = (torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes)
    check(lambda: linear(x, weight, bias), [x, weight, bias])
    check(lambda: linear(x, weight), [x, weight])


@settings(max_examples=20, deadline=None)
@given(lengths=lengths, sizes=st.tuples(hidden_sizes, hidden_sizes), seed=seeds)
def test_attention(lengths, sizes, seed) -> None:
    generator = generator_of(seed)
    pool = AttentionPool(*sizes, generator=generator)
    offsets = torch.from_numpy(offsets_of(lengths))
    h = torch.randn(int(offsets[-1]), sizes[0], generator=generator, requires_grad=True)
    check(lambda: pool.scores(h), [h, *pool.parameters()])
    check(lambda: pool(h, offsets)[0], [h, *pool.parameters()])
    scores = (5 * torch.randn(len(h), generator=generator)).requires_grad_()
    check(lambda: torch.cat([part.flatten() for part in attend(h, scores, offsets)]), [h, scores])
    index = torch.randint(len(h), (int(offsets[-1]),), generator=generator)
    check(lambda: attend_paths(h, scores, offsets, index), [h, scores])


@settings(max_examples=20, deadline=None)
@given(lengths=lengths, attention=hidden_sizes, classes=st.integers(1, 11), seed=seeds)
def test_pair_attention(lengths, attention, classes, seed) -> None:
    generator = generator_of(seed)
    left, right = (torch.randn(9, attention + classes, generator=generator, requires_grad=True) for _ in range(2))
    context = torch.randn(attention, generator=generator, requires_grad=True)
    offsets = torch.from_numpy(offsets_of(lengths))
    nodes = torch.randint(9, (2, sum(lengths)), generator=generator)
    check(lambda: pair_attention(left, right, context, offsets, nodes[0], nodes[1]), [left, right, context])


def test_empty_segments_and_no_rows_at_all() -> None:
    assert kernels() is not None
    pooled, _ = attend(torch.ones(3, 2), torch.zeros(3), torch.tensor([0, 0, 3, 3]))
    assert pooled.tolist() == [[0, 0], [1, 1], [0, 0]]
    lstm = LSTM(2, 3, generator=generator_of(0))
    h = lstm(torch.ones(0, 2), Order(offsets_of([])))
    h.sum().backward()
    assert h.shape == (0, 3)
    assert lstm.bias.grad is not None
    assert not lstm.bias.grad.any()


def test_relative_error_of_tanh_and_exp() -> None:
    one = torch.ones(1)
    assert kernels() is not None
    x = torch.cat([torch.linspace(-12, 12, 100_001), torch.logspace(-12, 0, 5_000), torch.tensor([-1e30, 1e30])])
    pool = AttentionPool(1, 1, generator=generator_of(0))
    pool.load_state_dict({"weight": one.unsqueeze(1), "bias": torch.zeros(1), "context": one})
    with torch.no_grad():
        tanh = pool.scores(x.unsqueeze(1))
    assert relative_error(tanh, x.double().tanh()) < 1e-6
    # The weight of a score x beside a score 0 is a sigmoid.
    scores = torch.stack([x, torch.zeros_like(x)], dim=1).flatten()
    _, weights = attend(torch.ones(len(scores), 1), scores, 2 * torch.arange(len(x) + 1))
    assert relative_error(weights[::2], x.double().sigmoid()) < 1e-6


def relative_error(ours: Tensor, true: Tensor) -> float:
    true = true.clamp_min(1e-30) if bool((true >= 0).all()) else true
    return float(((ours.double() - true).abs() / true.abs().clamp_min(1e-30))[true.abs() > 1e-30].max())


def test_not_a_number_stays_one() -> None:
    """A NaN must reach the loss, where training stops, and not be hidden by an activation."""
    for layer in (LSTM(2, 9, generator=generator_of(0)), GRU(2, 9, generator=generator_of(0))):
        h = layer(torch.tensor([[float("nan"), 1.0], [1.0, 1.0]]), Order(offsets_of([1, 1])))
        assert h[0].isnan().all()
        assert not h[1].isnan().any()
    assert AttentionPool(2, 3, generator=generator_of(0)).scores(torch.full((1, 2), torch.nan)).isnan().all()


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_the_number_of_threads_does_not_change_a_bit(kind) -> None:
    generator = generator_of(0)
    layer, pool = kind(20, 50, generator=generator), AttentionPool(50, 30, generator=generator)
    lengths = torch.randint(1, 40, (200,), generator=generator).tolist()
    offsets = offsets_of(lengths)
    x = torch.randn(int(offsets[-1]), 20, generator=generator, requires_grad=True)

    def run() -> tuple[Tensor, ...]:
        pooled, _ = pool(layer(x, Order(offsets)), torch.from_numpy(offsets))
        leaves = [x, *layer.parameters(), pool.weight, pool.bias]
        return pooled.detach(), *torch.autograd.grad(pooled.square().sum(), leaves)

    check_threads_change_no_bit(run, (1, 2, 3, 2))


def test_a_wrong_index_is_an_error_and_not_a_crash() -> None:
    assert kernels() is not None
    lstm = LSTM(2, 3, generator=generator_of(0))
    order = Order(offsets_of([2]))
    with pytest.raises(IndexError, match="row numbers from 0 to 5 for 5 rows"):
        lstm.forward_projected(torch.ones(5, 12), order, torch.tensor([0, 5]))
    with pytest.raises(IndexError, match="3 input rows for offsets that end at 2"):
        lstm(torch.ones(3, 2), order)
    with pytest.raises(IndexError, match="offsets must rise from 0 to 3"):
        attend(torch.ones(3, 2), torch.zeros(3), torch.tensor([0, 4]))
    with torch.no_grad(), pytest.raises(IndexError, match="row numbers from -1 to 0 for 3 rows"):
        attend_paths(torch.ones(3, 2), torch.zeros(3), torch.tensor([0, 2]), torch.tensor([0, -1]))
    with pytest.raises(IndexError, match="offsets must rise from 0"):
        Order(np.array([0, 50_000, 3]))
    with pytest.raises(IndexError, match="rows of 8 numbers for weights of 4"):
        check_columns(torch.ones(2, 8), torch.ones(3, 4))
    with pytest.raises(IndexError, match="a node's parent must be of the level before"):
        forest_h(lstm, torch.ones(1, 2), torch.zeros(3, dtype=torch.int64), torch.tensor([-1, 0, 0]), [1, 1, 1])
    with pytest.raises(IndexError, match="levels of 3 nodes"):
        forest_h(lstm, torch.ones(1, 2), torch.tensor([0, 0]), torch.tensor([-1, 0]), [1, 2])
    with pytest.raises(IndexError, match="projections to 9 gates for a state of 12"):
        check_gates(torch.ones(2, 9), torch.ones(12, 3))


def test_float64_takes_the_torch_layers() -> None:
    lstm = LSTM(2, 3, generator=generator_of(0)).double()
    assert lstm(torch.ones(2, 2, dtype=torch.float64), Order(offsets_of([2]))).dtype is torch.float64


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache folder, and a process that has not loaded the kernels yet."""
    monkeypatch.setenv("EMHRNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("EMHRNN_NATIVE", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    native_package._load.cache_clear()
    yield
    native_package._load.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("variable", "value", "level", "says"),
    [
        ("EMHRNN_NATIVE", "0", logging.INFO, "EMHRNN_NATIVE=0: NumPy and torch"),
        ("CXX", "false", logging.WARNING, "false failed with code 1: "),
        (
            "CXX",
            "no-such-compiler",
            logging.WARNING,
            "no C++ compiler found (no-such-compiler); install one or set CXX",
        ),
        ("EMHRNN_CACHE", "/dev/null/x", logging.WARNING, "set EMHRNN_CACHE to a folder that can be written"),
    ],
)
def test_without_kernels_the_torch_layers_serve_and_one_line_says_so(
    variable: str, value: str, level: int, says: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    if variable == "EMHRNN_CACHE" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("no C++ compiler: the cache folder is never asked for")
    caplog.set_level(logging.INFO)
    lstm = LSTM(2, 3, generator=generator_of(0))
    for _ in range(3):
        lstm(torch.ones(4, 2), Order(offsets_of([3, 1]))).sum().backward()
    (record,) = caplog.records
    assert record.levelno == level
    assert says in record.getMessage()
    assert "\n" not in record.getMessage()
    assert lstm.bias.grad is not None


@pytest.mark.usefixtures("fresh")
def test_the_switch() -> None:
    with native_kernels(False):
        assert kernels() is None
