"""Documents drawn from a stream."""

import numpy as np

from emhrnn.paper.sampling import Reservoir


def test_a_draw_is_the_same_for_the_same_seed_and_fair() -> None:
    def draw(seed: int, size: int = 3) -> list[int]:
        reservoir = Reservoir[int](size, seed)
        for number in range(10):
            reservoir.offer(number)
        return reservoir.drawn

    assert draw(1) == draw(1)
    assert draw(1) == sorted(draw(1))
    assert draw(0, size=20) == list(range(10))
    counts = np.bincount([number for seed in range(600) for number in draw(seed)], minlength=10)
    assert counts.sum() == 1800
    assert abs(counts - 180).max() < 60  # 5 standard deviations
