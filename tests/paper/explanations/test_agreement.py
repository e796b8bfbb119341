"""Figures of agreement beside slow or known ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score

from emhrnn.paper.explanations.agreement import (
    PART_FIGURES,
    TOKEN_FIGURES,
    Bootstrap,
    average_precision,
    iou_f1,
    pair_sums,
    part_sums,
    taken_words,
    token_sums,
)

ITEMS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30).filter(
    lambda items: any(marked for _, marked in items)
)


@given(ITEMS)
def test_average_precision_is_that_of_sklearn(items: list[tuple[int, bool]]) -> None:
    scores, marked = np.array([score for score, _ in items], dtype=float), np.array([on for _, on in items])
    assert average_precision(scores, marked) == pytest.approx(average_precision_score(marked, scores))


def test_tokens_at_the_human_rate() -> None:
    scores, marked = np.array([5.0, 1, 4, 0, 3]), np.array([True, False, True, True, False])
    sums = token_sums(scores, marked, 0.6)
    assert sums[1] == pytest.approx(f1_score(marked, [1, 0, 1, 0, 1]))
    assert TOKEN_FIGURES["AUPRC"](sums[None])[0] == pytest.approx(average_precision_score(marked, scores))


def test_spans_match_by_half_of_their_union() -> None:
    marked = np.array([1, 1, 1, 1, 0, 0, 1, 1], dtype=bool)
    assert iou_f1(marked, marked) == 1
    assert iou_f1(np.array([1, 1, 0, 0, 0, 0, 0, 0], dtype=bool), marked) == pytest.approx(2 / 3)  # 1 of 1, 1 of 2
    assert iou_f1(np.array([1, 0, 0, 0, 0, 1, 0, 0], dtype=bool), marked) == 0


@given(st.lists(st.tuples(st.integers(-4, 4), st.integers(-2, 2), st.integers(0, 3)), min_size=3, max_size=30))
def test_parts_have_signs_and_ranks(items: list[tuple[int, int, int]]) -> None:
    scores, ratings, document = (np.array(column) for column in zip(*items, strict=True))
    sums = part_sums(scores.astype(float), ratings, document, 4).sum(axis=0, keepdims=True)
    clear = ratings != 0
    if clear.any():
        assert PART_FIGURES["sign"](sums)[0] == pytest.approx((np.sign(scores) == np.sign(ratings))[clear].mean())
    if len(set(scores.tolist())) > 1 and len(set(ratings.tolist())) > 1:
        assert PART_FIGURES["rank"](sums)[0] == pytest.approx(spearmanr(scores, ratings).statistic)


def test_edits_and_their_units() -> None:
    before, after = ["the", "soup", "was", "bad", "and", "cold"], ["the", "soup", "was", "really", "good", "and"]
    assert taken_words(before, after).tolist() == [False, False, False, True, False, True]
    assert not taken_words(before, [*before, "not"]).any()
    assert pair_sums(np.array([3.0, 2, 1]), np.array([False, True, False])).tolist() == [0, 1, 1, 1]


def test_differences_are_of_the_same_documents() -> None:
    better, worse = np.array([[0.5, 0, 0, 1], [0.7, 0, 0, 1]]), np.array([[0.4, 0, 0, 1], [0.6, 0, 0, 1]])
    bootstrap = Bootstrap.of(2, 0)
    assert (found := bootstrap.mean(TOKEN_FIGURES["AUPRC"], better, worse)).value == pytest.approx(0.1)
    assert (found.low, found.high) == pytest.approx((0.1, 0.1))  # where each document alone varies
    assert bootstrap.mean(TOKEN_FIGURES["AUPRC"], better).low == pytest.approx(0.5)
