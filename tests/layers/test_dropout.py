import pytest
import torch

from emhrnn.layers.dropout import dropout
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


def test_neighbours_that_share_a_random_number_do_not_share_their_fate() -> None:
    """Four entries come of one number: each is zeroed as often as p says, and pairs as often as independence says."""
    zeroed = dropout(torch.ones(100_000, 4), 0.3, generator_of(1)) == 0
    together = zeroed.double().T @ zeroed.double() / len(zeroed)
    expected = torch.full((4, 4), 0.09, dtype=torch.float64).fill_diagonal_(0.3)
    torch.testing.assert_close(together, expected, atol=0.006, rtol=0)  # four standard deviations


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 1), (0, 7), (2, 3, 3)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    assert dropout(torch.ones(shape, dtype=torch.float64), 0.5, generator_of(0)).shape == shape
