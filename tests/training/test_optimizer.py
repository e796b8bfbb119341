"""Learning rates and weight decay by parameter; averaged weights."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from emhrnn.layers.native import native_kernels
from emhrnn.models.model import DocumentModel
from emhrnn.paper.models.layers import WordEmbedding
from emhrnn.training.config import TrainingConfig
from emhrnn.training.optimizer import EVERY, TINY, Optimizer, RowAdagrad, WeightAverage


class Tower(DocumentModel):
    """Two layers, of which the lower learns at a tenth of the rate."""

    def __init__(self) -> None:
        super().__init__()
        self.lower, self.upper = nn.Linear(2, 2), nn.Linear(2, 2)

    def learning_rate_scales(self) -> dict[str, float]:
        return {name: 0.1 if name.startswith("lower") else 1.0 for name, _ in self.named_parameters()}


def test_layers_learn_at_their_own_rates() -> None:
    model = Tower()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = Optimizer(model, TrainingConfig(optimizer="sgd", momentum=0, weight_decay=0))
    optimizer.set_learning_rate(0.5)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    for name, p in model.named_parameters():
        moved = 0.05 if name.startswith("lower") else 0.5
        torch.testing.assert_close(before[name] - p.detach(), torch.full_like(p, moved))


def test_tables_of_few_rows_learn_at_their_own_rates_too() -> None:
    class Tables(DocumentModel):
        def learning_rate_scales(self) -> dict[str, float]:
            return {"ngrams.table": 50.0}

    model = Tables()
    model.embedding, model.ngrams = WordEmbedding(torch.zeros(3, 2), tuned=True), nn.Module()
    model.output = nn.Linear(2, 2)
    model.ngrams.table = nn.Parameter(torch.zeros(4, 2))
    optimizer = Optimizer(model, TrainingConfig())
    optimizer.set_learning_rate(0.5)
    rates = {group["params"][0]: group["lr"] for part in optimizer.parts[1:] for group in part.param_groups}
    assert rates == {model.embedding.table: 0.5, model.ngrams.table: 0.5 * 50.0}
    plain = Optimizer(model, TrainingConfig(optimizer="sgd"))
    plain.set_learning_rate(0.5)
    assert {group["lr"] for part in plain.parts for group in part.param_groups} == {0.5}


def test_weight_decay_spares_biases_and_the_indicator() -> None:
    model = DocumentModel()
    model.indicator, model.output = nn.Linear(2, 1), nn.Linear(2, 2)
    optimizer = Optimizer(model, TrainingConfig(weight_decay=0.1), indicator_pace=5.0)
    found = {
        name: (group["weight_decay"], group["pace"])
        for group in optimizer.parts[0].param_groups
        for name, p in model.named_parameters()
        if any(p is other for other in group["params"])
    }
    assert found == {
        "indicator.weight": (0.0, 5.0),
        "indicator.bias": (0.0, 5.0),
        "output.weight": (0.1, 1.0),
        "output.bias": (0.0, 1.0),
    }


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=8), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
)
def test_equals_adagrad(steps: list[list[int]], seed: int, native: bool, decay: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(6, 3, generator=generator)
    ours, theirs = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    sparse = RowAdagrad([{"params": [ours]}], lr=0.1, decay=decay)
    dense = torch.optim.Adagrad([theirs], lr=0.1, eps=TINY)
    for rows in steps:
        values = torch.randn(len(rows), 3, generator=generator)
        ours.grad = torch.sparse_coo_tensor(torch.tensor([rows]), values, ours.shape, check_invariants=True).coalesce()
        theirs.grad = ours.grad.to_dense()
        with torch.no_grad():
            theirs[ours.grad.indices()[0]] *= 1 - 0.1 * decay
        before = ours._version
        with native_kernels(native):
            sparse.step()
        assert ours._version > before  # what is computed from the table and kept must notice
        dense.step()
    torch.testing.assert_close(ours, theirs)


def test_without_a_gradient_nothing_moves() -> None:
    table = nn.Parameter(torch.ones(2, 2))
    optimizer = RowAdagrad([{"params": [table]}], lr=0.1)
    optimizer.step()
    assert not optimizer.state
    assert (table == 1).all()


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
