import torch

from emhrnn.layers import dropout
from tests.layers.shapes import generator_of


def test_without_a_generator_nothing_happens() -> None:
    x = torch.ones(3, 2)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, generator_of(0)) is x


def test_mean_is_kept_and_the_seed_decides() -> None:
    x = torch.ones(200, 100)
    dropped = dropout(x, 0.25, generator_of(0))
    assert set(dropped.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert abs(dropped.mean().item() - 1) < 0.02
    assert torch.equal(dropped, dropout(x, 0.25, generator_of(0)))
