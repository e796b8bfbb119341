"""The learning rate over the steps."""

import pytest

from emhrnn.training.config import TrainingConfig
from emhrnn.training.schedule import learning_rate


def test_slanted_triangle() -> None:
    """Sun et al.: a tenth of the steps up, the rest down."""
    config = TrainingConfig(learning_rate=2e-5, warmup=0.1, decay="linear")
    rates = [learning_rate(config, step, 1000) for step in range(1001)]
    assert max(rates) == rates[99] == rates[100] == pytest.approx(2e-5)
    assert rates[49] == pytest.approx(1e-5)
    assert rates[550] == pytest.approx(2e-5 * (1 - 0.5 * 0.95))
    assert rates[1000] == pytest.approx(1e-6)
    assert rates[100:] == sorted(rates[100:], reverse=True)


def test_adam_begins_gently_and_sgd_at_once() -> None:
    adam = TrainingConfig(learning_rate=1.0, decay="none")
    sgd = TrainingConfig(learning_rate=1.0, decay="none", optimizer="sgd")
    assert [learning_rate(adam, step, 1000) for step in (0, 24, 49, 500)] == [0.02, 0.5, 1.0, 1.0]
    assert learning_rate(sgd, 0, 1000) == 1.0
