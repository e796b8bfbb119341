"""Temperature against a grid of them, calibration error against a loop, and what neither may ever do."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emhrnn.evaluation.calibration import (
    BINS,
    FEWEST,
    HIGHEST,
    LOWEST,
    expected_calibration_error,
    fit_temperature,
    reliability,
)
from emhrnn.models.predictor import probabilities
from tests.oracles import calibration as oracle

GRID = (HIGHEST / LOWEST) ** (1 / 400)  # between neighbours of the oracle's grid


def drawn(documents: int, classes: int, seed: int, sharpness: float, *, several: bool) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose labels were drawn at temperature `sharpness`."""
    rng = np.random.default_rng(seed)
    logits = (2 * rng.normal(size=(documents, classes))).astype(np.float32)
    if several:
        return logits, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits / sharpness))).astype(np.float32)
    p = torch.softmax(torch.from_numpy(logits).double() / sharpness, dim=1).numpy()
    return logits, np.array([rng.choice(classes, p=row) for row in p], dtype=np.int64)


@settings(max_examples=8, deadline=None)
@given(
    st.integers(FEWEST, 60), st.integers(2, 5), st.integers(0, 10**6), st.sampled_from([0.4, 1.0, 3.0]), st.booleans()
)
def test_the_temperature_is_the_best_of_a_grid(
    n: int, classes: int, seed: int, sharpness: float, several: bool
) -> None:
    logits, labels = drawn(n, classes, seed, sharpness, several=several)
    temperature, remark = fit_temperature(logits, labels)
    assume(not remark.startswith("not fitted"))
    best = oracle.best_temperature(logits, labels, LOWEST, HIGHEST)
    assert best / GRID <= temperature <= best * GRID
    assert oracle.loss(logits, labels, temperature) <= oracle.loss(logits, labels, best) + 1e-9
    assert (temperature in (LOWEST, HIGHEST)) == remark.startswith("at the limit")


@pytest.mark.parametrize("several", [False, True])
def test_the_temperature_that_the_labels_were_drawn_at_is_found(several: bool) -> None:
    logits, labels = drawn(20_000, 4, 0, 2.5, several=several)
    assert fit_temperature(logits, labels)[0] == pytest.approx(2.5, rel=0.05)


def test_data_that_cannot_decide_leaves_probabilities_alone() -> None:
    logits, labels = drawn(FEWEST - 1, 3, 0, 1.0, several=False)
    assert fit_temperature(logits, labels) == (1.0, "not fitted: 19 documents are too few, 20 are needed")
    logits, _ = drawn(50, 3, 0, 1.0, several=False)
    temperature, remark = fit_temperature(logits, logits.argmax(axis=1))
    assert temperature == 1.0
    assert "every prediction is right" in remark
    temperature, remark = fit_temperature(logits, (logits > 0).astype(np.float32))
    assert temperature == 1.0
    assert "every prediction is right" in remark
    logits[3, 1] = np.inf
    assert fit_temperature(logits, logits.argmin(axis=1))[1] == "not fitted: a logit is not finite"


def test_the_temperature_is_bounded() -> None:
    logits, _labels = drawn(50, 3, 0, 1.0, several=False)
    assert fit_temperature(logits, logits.argmin(axis=1)) == (HIGHEST, "at the limit: T is kept between 0.1 and 10")
    sure = logits.argmax(axis=1)
    sure[0] = np.argsort(logits[0])[-2]  # one mistake, so small that any confidence would do
    logits[0, sure[0]] = logits[0].max() - 1e-4
    assert fit_temperature(logits, sure)[0] == LOWEST
    assert fit_temperature(np.zeros((30, 2), dtype=np.float32), np.arange(30) % 2)[0] in (HIGHEST, 1.0)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.lists(st.floats(-60, 60, width=32), min_size=3, max_size=3), min_size=1, max_size=8),
    st.floats(LOWEST, HIGHEST),
    st.booleans(),
)
def test_the_temperature_never_changes_the_decision(rows: list[list[float]], temperature: float, several: bool) -> None:
    logits = np.array([*rows, [1.0, 1.0 + 1e-07, 0.0], [3e-07, -1e-08, -3e-07]], dtype=np.float32)
    plain = probabilities(logits, multi_label=several)
    warm = probabilities(logits, multi_label=several, temperature=temperature)
    assert ((warm >= 0) & (warm <= 1)).all()
    if several:
        assert np.array_equal(plain > 0.5, warm > 0.5)
        assert np.array_equal(plain >= 0.5, warm >= 0.5)
    else:
        assert np.array_equal(plain.argmax(axis=1), warm.argmax(axis=1))
        np.testing.assert_allclose(warm.sum(axis=1), 1, atol=1e-6)
        np.testing.assert_allclose(warm, torch.softmax(torch.from_numpy(logits) / temperature, dim=1), atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(2, 6), st.integers(0, 10**6), st.booleans())
def test_the_calibration_error_is_the_loops_and_bounded(n: int, classes: int, seed: int, several: bool) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(classes, 0.3), n)
    p[rng.random(n) < 0.2] = np.eye(classes)[0]  # exactly 0 and 1
    labels = (rng.random((n, classes)) < 0.4).astype(np.float32) if several else rng.integers(0, classes, n)
    confidence, right = (p.ravel(), labels.ravel()) if several else (p.max(axis=1), p.argmax(axis=1) == labels)
    bins = reliability(p, labels)
    error = expected_calibration_error(bins)
    assert error == pytest.approx(oracle.calibration_error(confidence, right, BINS))
    assert abs(confidence.mean() - right.mean(dtype=np.float64)) - 1e-9 <= error <= 1  # the bins can only hide less
    assert sum(b.predictions for b in bins) == len(confidence)


def test_extreme_calibration_errors() -> None:
    certain = np.eye(2)[[0, 1, 0]]
    assert expected_calibration_error(reliability(certain, np.array([0, 1, 0]))) == 0
    assert expected_calibration_error(reliability(certain, np.array([1, 0, 1]))) == 1
