"""Labels from probabilities: thresholds, abstaining, and sets whose coverage is as stated."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.errors import ConfigError
from emhrnn.evaluation.decision import MOST_SCORES, Conformal, abstentions, decision

SHARES = np.array([[0.7, 0.3], [0.45, 0.55], [0.1, 0.9]], dtype=np.float32)
TWO = ("ham", "spam")


def test_the_likeliest_class_and_abstaining() -> None:
    assert decision(TWO, multi_label=False).labels(SHARES) == ["ham", "spam", "spam"]
    assert decision(TWO, multi_label=False, min_confidence=0.6).labels(SHARES) == ["ham", None, "spam"]


def test_a_threshold_of_one_of_two_classes() -> None:
    assert decision(TWO, multi_label=False, threshold={"spam": 0.8}).labels(SHARES) == ["ham", "ham", "spam"]
    assert decision(TWO, multi_label=False, threshold={"spam": 0.2}).labels(SHARES) == ["spam", "spam", "spam"]
    assert decision(TWO, multi_label=False, threshold={"ham": 0.4}).labels(SHARES) == ["ham", "ham", "spam"]


def test_thresholds_of_several_labels() -> None:
    assert decision(TWO, multi_label=True).labels(SHARES) == [("ham",), ("spam",), ("spam",)]
    assert decision(TWO, multi_label=True, threshold=0.4).labels(SHARES) == [("ham",), TWO, ("spam",)]
    assert decision(TWO, multi_label=True, threshold={"spam": 0.95}).labels(SHARES) == [("ham",), (), ()]


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({"min_confidence": 1.5}, "between 0 and 1"),
        ({"min_confidence": 0.5, "multi_label": True}, "several"),
        ({"min_confidence": 0.5, "threshold": 0.5}, "both"),
        ({"threshold": 0.4}, "which class"),
        ({"threshold": {"egg": 0.4}}, "'egg'"),
        ({"threshold": {"ham": 0.4}, "classes": ("ham", "spam", "egg")}, "min-confidence"),
    ],
)
def test_rules_that_do_not_fit(rule: dict[str, object], word: str) -> None:
    given = {"classes": TWO, "multi_label": False, **rule}
    with pytest.raises(ConfigError, match=word):
        decision(given.pop("classes"), **given)  # type: ignore[arg-type]


def drawn(documents: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of a model that is far too sure, and labels."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(documents, 4))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    shares = np.exp(3 * logits) / np.exp(3 * logits).sum(axis=1, keepdims=True)
    return shares.astype(np.float32), np.array([rng.choice(4, p=row) for row in true])


@given(st.integers(20, 300), st.sampled_from([0.5, 0.8, 0.9, 0.95]), st.integers(0, 1000))
def test_sets_are_those_of_the_definition(n: int, coverage: float, seed: int) -> None:
    shares, labels = drawn(n, seed)
    new, _ = drawn(30, seed + 1)
    rank = math.ceil((n + 1) * coverage)
    if rank > n:
        return
    largest = sorted(1 - float(row[label]) for row, label in zip(shares, labels, strict=True))[rank - 1]
    inside = Conformal.fitted(shares, labels).sets(new, coverage)
    for row, found in zip(new, inside, strict=True):
        for c in range(4):
            share = 1 - float(row[c])
            if abs(share - largest) > 2e-6:
                assert bool(found[c]) == (share <= largest or c == int(row.argmax()))


@pytest.mark.parametrize("documents", [199, 5000])
def test_the_coverage_is_as_stated(documents: int) -> None:
    """Over many draws of calibration data; 5,000 documents have more scores than are kept."""
    covered = []
    for seed in range(40):
        conformal = Conformal.fitted(*drawn(documents, seed))
        assert len(conformal.scores) <= MOST_SCORES
        conformal = Conformal.from_dict(conformal.to_dict())
        shares, labels = drawn(500, 1000 + seed)
        covered.append(conformal.sets(shares, 0.9)[np.arange(500), labels].mean())
    assert 0.895 < np.mean(covered) < 0.92  # the model's own 90 % would hold 0.74


def test_too_few_documents_for_a_coverage() -> None:
    conformal = Conformal.fitted(*drawn(50, 0))
    with pytest.raises(ConfigError, match=r"takes 99 labelled documents.*calibrated on 50"):
        conformal.sets(SHARES, 0.99)
    with pytest.raises(ConfigError, match="between 0 and 1"):
        conformal.sets(SHARES, 90.0)


def test_abstentions_count() -> None:
    labels = np.array([0, 0, 1])
    told = {level.confidence: (level.coverage, level.accuracy) for level in abstentions(SHARES, labels)}
    assert told[0.5] == pytest.approx((1, 2 / 3))
    assert told[0.7] == pytest.approx((1 / 3 if SHARES[0, 0] < 0.7 else 2 / 3, 1.0))
    assert told[0.95] == (0, None)
