"""The native multiscale layers against the torch ones, which the tests of HM-RNN and MHS-RNN hold against oracles."""

import shutil

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emhrnn.layers.native import native_kernels
from emhrnn.layers.order import Order
from emhrnn.paper.models.multiscale_lstm import Wiring, multiscale_states
from tests.layers.shapes import generator_of, hidden_sizes, offsets_of, seeds

pytestmark = pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="no C++ compiler")


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=20),
    layers=st.integers(2, 4),
    size=hidden_sizes,
    flush_own=st.booleans(),
    some_forced=st.booleans(),
    seed=seeds,
)
def test_equals_torch(lengths, layers, size, flush_own, some_forced, seed) -> None:
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


def test_wrong_offsets_are_an_error_not_a_crash() -> None:
    wiring = Wiring(2, 3)
    with pytest.raises(IndexError, match="4 input rows for offsets that end at 5"):
        multiscale_states(
            torch.zeros(4, 13), [torch.zeros(13, 6), torch.zeros(12, 6)], [torch.zeros(12)], torch.ones(()),
            Order(offsets_of([5])), wiring,
        )  # fmt: skip
