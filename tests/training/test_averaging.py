import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from emhrnn.training.averaging import EVERY, WeightAverage


def _weights(layer: nn.Linear) -> list[float]:
    return layer.weight.detach().flatten().tolist()


def _trained(layer: nn.Linear, average: WeightAverage, first: int, last: int, per_epoch: int) -> list[torch.Tensor]:
    """Steps that set the weight to the number of the step; the weights that the average sees."""
    seen = []
    for step in range(first, last):
        with torch.no_grad():
            layer.weight.fill_(float(step))
        average.update(step, per_epoch)
        if step % EVERY == 0:
            seen.append(layer.weight.detach().clone())
    return seen


@given(st.integers(1, 60), st.integers(1, 40), st.floats(0.1, 3))
def test_average_is_the_recursion_of_its_docstring(steps: int, per_epoch: int, epochs: float) -> None:
    layer = nn.Linear(2, 1, bias=False)
    average = WeightAverage(layer, epochs)
    seen = _trained(layer, average, 0, steps, per_epoch)
    expected, window = seen[0], max(epochs * per_epoch / EVERY, 1)
    for n, weights in enumerate(seen[1:], start=2):
        expected = expected + (weights - expected) / min(n, window)
    with average.applied():
        torch.testing.assert_close(layer.weight.detach(), expected)
    assert _weights(layer) == [steps - 1.0] * 2  # as the last step left it


def test_without_epochs_the_model_keeps_its_own_weights() -> None:
    layer = nn.Linear(2, 1, bias=False)
    average = WeightAverage(layer, 0.0)
    _trained(layer, average, 0, 25, 5)
    with average.applied():
        assert _weights(layer) == [24.0, 24.0]
    assert average.state_dict() == {}


def test_a_restored_average_continues_as_if_never_stopped() -> None:
    whole, first, second = (nn.Linear(2, 1, bias=False) for _ in range(3))
    one, before, after = (WeightAverage(layer, 1.0) for layer in (whole, first, second))
    _trained(whole, one, 0, 95, 30)
    _trained(first, before, 0, 47, 30)
    after.load_state_dict({name: value.clone() for name, value in before.state_dict().items()})
    _trained(second, after, 47, 95, 30)
    assert torch.equal(one.values["weight"], after.values["weight"])
