"""The degeneracy monitor (docs/paper.md 8: 11)."""

import math

import numpy as np
import pytest
import torch

from emhrnn.models.segmentation import single_words
from emhrnn.paper.em.objective import Monitor
from tests.paper.em.examples import make_batch


def test_numbers_by_hand():
    batch = make_batch([[4, 2], [3]])
    z = np.array([0, 1, 0, 1, 0, 1, 1, 0, 1], dtype=bool)
    monitor = Monitor()
    monitor.update(batch, z, np.full(9, 0.5))
    seen = monitor.summary()
    assert seen["boundary_rate"] == pytest.approx(2 / 6)
    assert seen["mean_phrase_length"] == pytest.approx(9 / 5)
    assert seen["max_phrase_length"] == 2
    assert seen["pi_entropy"] == pytest.approx(math.log(2))
    assert seen["pi_mean"] == pytest.approx(0.5)


def test_two_batches_count_as_one():
    both, apart = Monitor(), Monitor()
    whole = make_batch([[4, 2], [3]])
    z, pi = np.array([0, 1, 0, 1, 0, 1, 1, 0, 1], dtype=bool), np.linspace(0.1, 0.9, 9)
    both.update(whole, z, pi)
    apart.update(make_batch([[4, 2]]), z[:6], pi[:6])
    apart.update(make_batch([[3]]), z[6:], pi[6:])
    assert both.summary() == pytest.approx(apart.summary())


def test_a_checkpoint_keeps_the_sums():
    batch, kept, loaded = make_batch([[4, 2], [3]]), Monitor(), Monitor()
    kept.update(batch, single_words(batch), np.linspace(0.1, 0.9, 9))
    state = kept.state_dict()
    state["counts"] = torch.cat([state["counts"], torch.zeros(2, dtype=torch.int64)])  # as version 0.1 wrote it
    loaded.load_state_dict(state)
    assert loaded.summary() == kept.summary()


def test_certain_pi_has_no_entropy():
    batch = make_batch([[3]])
    monitor = Monitor()
    monitor.update(batch, single_words(batch), np.array([0.0, 1.0, 1.0], dtype=np.float32))
    assert monitor.summary()["pi_entropy"] == 0
