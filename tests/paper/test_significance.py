"""Significance tests against enumeration, and against what must hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.paper.significance import (
    SAMPLES,
    accuracy_interval,
    combine,
    holm,
    mcnemar,
    mcnemar_of_seeds,
    paired_bootstrap,
)
from tests.oracles import significance as oracle

answers = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=9)


@settings(max_examples=30, deadline=None)
@given(answers)
def test_mcnemar_is_exact(pairs: list[tuple[bool, bool]]) -> None:
    ours, theirs = np.array(pairs).T
    assert mcnemar(ours, theirs) == pytest.approx(oracle.mcnemar(ours, theirs))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**20), st.integers(1, 2), st.integers(1, 2), st.integers(2, 4))
def test_the_bootstrap_draws_from_the_distribution_of_all_resamples(seed: int, a: int, b: int, documents: int) -> None:
    generator = np.random.default_rng(seed)
    ours, theirs = generator.random((a, documents)) < 0.7, generator.random((b, documents)) < 0.4
    every = np.array(oracle.bootstrap_differences(ours, theirs))
    found = paired_bootstrap(ours, theirs, samples=20_000)
    assert found.difference == pytest.approx(ours.mean() - theirs.mean())
    expected = min(1.0, 2 * min((every <= 1e-12).mean(), (every >= -1e-12).mean()))
    assert found.p == pytest.approx(expected, abs=0.03)
    for end, level in ((found.low, 0.025), (found.high, 0.975)):  # of a distribution with a few steps
        below = np.quantile(every, level - 0.01, method="lower")
        above = np.quantile(every, level + 0.01, method="higher")
        assert below - 1e-9 <= end <= above + 1e-9


def test_equal_systems_do_not_differ() -> None:
    right = np.random.default_rng(0).random((3, 200)) < 0.6
    found = paired_bootstrap(right, right)
    assert (found.difference, mcnemar_of_seeds(right, right)) == (0.0, 1.0)
    assert found.low < 0 < found.high  # the seeds of the two are drawn independently
    assert found.p > 0.9


def test_p_is_uniform_where_there_is_no_difference() -> None:
    """The law of a test: at level 0.05 it errs about once in twenty."""
    generator = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        ours, theirs = generator.random((2, 1, 300)) < 0.5
        wrong += paired_bootstrap(ours, theirs, samples=500).p < 0.05
    assert 2 <= wrong <= 22


def test_seeds_that_vary_count_as_luck() -> None:
    """The same mean difference; with seeds that disagree it is less certain."""
    documents = np.arange(1000)
    theirs = np.stack([documents < 600] * 3)
    steady = np.stack([documents < 640] * 3)
    shaky = np.stack([documents < n for n in (560, 640, 720)])
    assert paired_bootstrap(steady, theirs).p < 0.001
    assert paired_bootstrap(shaky, theirs).p > 0.05


def test_the_same_bits_every_time() -> None:
    ours, theirs = np.random.default_rng(2).random((2, 3, 50)) < 0.5
    assert paired_bootstrap(ours, theirs) == paired_bootstrap(ours, theirs)
    assert paired_bootstrap(ours, theirs).p >= 2 / (SAMPLES + 1)


def test_the_interval_of_one_seed_is_that_of_a_share() -> None:
    low, high = accuracy_interval((np.arange(400) < 300)[None])
    half = 1.96 * np.sqrt(0.75 * 0.25 / 400)
    assert (low, high) == (pytest.approx(0.75 - half, abs=0.005), pytest.approx(0.75 + half, abs=0.005))


def test_p_values_together() -> None:
    assert combine([0.04]) == 0.04
    assert combine([0.01, 0.5]) == 0.02
    assert combine([0.5, 0.01, 0.02]) == pytest.approx(0.03)
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
