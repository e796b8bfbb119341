"""Shares of experts against a grid that closes in, and what they are where the answer is known."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from emhrnn.evaluation import calibration
from emhrnn.evaluation.calibration import FEWEST, MOST, fit_shares
from tests.oracles import experts as oracle

TRUE = np.array([1.5, 0.6, 0.0])


def drawn(documents: int, classes: int, seed: int, *, several: bool) -> tuple[np.ndarray, np.ndarray]:
    """What three experts say of documents whose labels were drawn with the shares TRUE."""
    rng = np.random.default_rng(seed)
    said = (1.5 * rng.normal(size=(3, documents, classes))).astype(np.float32)
    logits = np.tensordot(TRUE, said.astype(np.float64), axes=1)
    if several:
        return said, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)
    return said, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


@settings(max_examples=6, deadline=None)
@given(st.integers(FEWEST, 40), st.integers(2, 4), st.integers(0, 10**6), st.booleans())
def test_the_shares_are_the_best_of_a_grid(n: int, classes: int, seed: int, several: bool) -> None:
    said, labels = drawn(n, classes, seed, several=several)
    shares, remark = fit_shares(said, labels)
    assert ((shares >= 0) & (shares <= MOST)).all()
    assume(not remark)
    best = oracle.best_shares(said, labels, MOST)
    assert np.allclose(shares, best, atol=2e-3)
    assert oracle.loss(said, labels, shares) <= oracle.loss(said, labels, best) + 1e-7


@pytest.mark.parametrize("several", [False, True])
def test_the_shares_that_labels_were_drawn_with_are_found(several: bool) -> None:
    said, labels = drawn(20_000, 4, 0, several=several)
    shares, remark = fit_shares(said, labels)
    assert remark == ""
    assert np.allclose(shares, TRUE, atol=0.05)


def test_few_documents_move_the_shares_less() -> None:
    said, labels = drawn(2_000, 4, 1, several=False)
    few, many = (fit_shares(said[:, :n], labels[:n])[0] for n in (FEWEST, 2_000))
    assert np.abs(few - 1).max() < np.abs(many - 1).max()
    assert fit_shares(said[:, : FEWEST - 1], labels[: FEWEST - 1])[0].tolist() == [1.0, 1.0, 1.0]


def test_of_many_documents_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    said, labels = drawn(1_000, 4, 3, several=False)
    monkeypatch.setattr(calibration, "ENOUGH", 400)
    assert np.array_equal(fit_shares(said, labels)[0], fit_shares(said[:, ::3], labels[::3])[0])


def test_data_that_cannot_decide_leaves_all_as_they_are() -> None:
    said, labels = drawn(50, 3, 0, several=False)
    shares, remark = fit_shares(said, said.sum(axis=0).argmax(axis=1))
    assert shares.tolist() == [1.0, 1.0, 1.0]
    assert "every prediction is right" in remark
    said[1, 3, 1] = np.nan
    shares, remark = fit_shares(said, labels)
    assert shares.tolist() == [1.0, 1.0, 1.0]
    assert remark == "not fitted: a logit is not finite"
