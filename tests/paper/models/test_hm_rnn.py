"""HM-RNN against its oracle: states, boundaries and straight-through gradients; the native layers against torch."""

import itertools
import shutil

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emhrnn.layers.native import native_kernels
from emhrnn.layers.order import Order
from emhrnn.paper.models.hm_rnn import HMRNN, HMRNNConfig, Wiring, annealed_slope, hard_sigmoid, multiscale_states
from tests.layers.shapes import hidden_sizes, offsets_of
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_logits_and_gradients,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    seeds,
    sentences_of,
    shapes,
    words_of,
)
from tests.oracles import hm_rnn as oracle


def small(seed: int = 0, **settings) -> HMRNN:
    sizes = {"word_size": 4} | settings
    return HMRNN(HMRNNConfig(**PLAIN | sizes), table=make_table(seed), classes=CLASSES, generator=generator_of(seed))


@pytest.mark.parametrize("layers", [2, 3, 4])
@settings(max_examples=8, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(layers, lengths, seed) -> None:
    model, batch = enlarged(small(seed, layers=layers), 1.3), make_batch(lengths, seed)
    model.set_epoch(seed % 20)
    output = check_logits_and_gradients(
        model, batch, lambda document: oracle.logits(model, sentences_of(batch, document))
    )
    z = [
        z_t[0].item()
        for document in range(batch.n_documents)
        for z_t in oracle.states(model, words_of(batch, document))[1]
    ]
    assert np.array_equal(output.z, np.array(z, dtype=bool) | batch.sentence_final)
    assert np.array_equal(output.pi.detach().numpy() > 0.5, np.array(z, dtype=bool))


@pytest.mark.parametrize("native", [False, True])
def test_gradients_of_a_long_document_are_finite(native) -> None:
    model, batch = small(word_size=8), make_batch([[700]])
    with torch.no_grad():
        for weight in (*model.weights, model.input.weight):
            weight.mul_(6)  # gradients double every few words
            weight[-1].mul_(0.1)  # detectors are undecided
    with native_kernels(native):
        gradients = torch.autograd.grad(model(batch).logits.sum(), model.parameters())
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_all_operations_occur_in_the_test_above() -> None:
    """UPDATE, COPY and FLUSH of the middle layer, or its equality would say little."""
    model, batch = enlarged(small(3), 1.3), make_batch([[6, 6, 6], [6, 5]], 3)
    seen = set()
    for document in range(2):
        _, z = oracle.states(model, words_of(batch, document))
        seen |= {(int(before[1]), int(now[0])) for before, now in itertools.pairwise(z)}
    assert seen == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_gradcheck_where_no_detector_switches() -> None:
    """Without the detectors' own gradient the function is smooth, and the backward pass is its derivative."""
    model = enlarged(small(5), 1.3)
    model.slope.fill_(1e6)  # every detector is saturated: straight-through says 0, and so do differences
    batch = make_batch([[3, 2], [4]], 5)
    names = [name for name, _ in model.named_parameters()]
    weights = [parameter.detach().clone().requires_grad_() for parameter in model.parameters()]

    def logits(*weights):
        return torch.func.functional_call(model, dict(zip(names, weights, strict=True)), (batch,)).logits

    assert torch.autograd.gradcheck(logits, weights, fast_mode=True, check_undefined_grad=False)


def test_slope_grows_to_five() -> None:
    assert [annealed_slope(epoch) for epoch in (0, 25, 100, 500)] == [1, 2, 5, 5]
    model = small()
    model.set_epoch(25)
    assert model.state_dict()["slope"] == 2
    x = torch.tensor([-1.0, -0.25, 0, 0.25, 1])
    assert hard_sigmoid(x, model.slope).tolist() == [0, 0.25, 0.5, 0.75, 1]


needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler")


@needs_compiler
@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    layers=st.integers(2, 4),
    size=hidden_sizes,
    flush_own=st.booleans(),
    some_forced=st.booleans(),
    seed=seeds,
)
def test_native_layers_equal_torch(lengths, layers, size, flush_own, some_forced, seed) -> None:
    generator, offsets = generator_of(seed), offsets_of(lengths)
    n, wiring = int(offsets[-1]), Wiring(layers, size, flush_own)

    def random(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return (scale * torch.randn(*shape, generator=generator)).requires_grad_()

    gates = [4 * size + wiring.has_detector(l) for l in range(layers)]
    projection = random(n, gates[0])
    weights = [random(gates[l], size * len(wiring.sources(l)), scale=size**-0.5) for l in range(layers)]
    biases = [random(gates[l]) for l in range(1, layers)]
    forced = torch.rand(n, generator=generator) < 0.3 if some_forced else None
    seen, leaves = torch.randn(n, layers, size, generator=generator), [projection, *weights, *biases]
    results = []
    for native in (False, True):
        with native_kernels(native):
            h, x_z = multiscale_states(projection, weights, biases, torch.tensor(1.2), Order(offsets), wiring, forced)
            assume(x_z.abs().min() > 1e-4)  # else the back ends may see different ends
            assume(((1.2 * x_z).abs() - 1).abs().min() > 1e-4)  # or pass a gradient here and none there
            results.append((h.detach(), x_z, *torch.autograd.grad((h * seen).sum(), leaves)))
    torch.testing.assert_close(results[1], results[0], atol=1e-4, rtol=1e-4)


@needs_compiler
def test_wrong_offsets_are_an_error_not_a_crash() -> None:
    wiring = Wiring(2, 3)
    with pytest.raises(IndexError, match="4 input rows for offsets that end at 5"):
        multiscale_states(
            torch.zeros(4, 13), [torch.zeros(13, 6), torch.zeros(12, 6)], [torch.zeros(12)], torch.ones(()),
            Order(offsets_of([5])), wiring,
        )  # fmt: skip
