"""Benchmarks run on tiny data and give the figures that they promise; what they are is not asserted."""

import math
from dataclasses import replace

import pytest
from benchmarks import evidence
from benchmarks.text import generated_texts

PROMISED = {
    "train_over_em_hrnn",
    "estep_local_over_exact",
    "infer_over_em_hrnn",
    "explain_over_predict",
    "growth",
    "infer_over_tfidf",
}


@pytest.mark.slow
def test_evidence_gives_its_figures() -> None:
    amount = replace(
        evidence.QUICK, rounds=1, few_rounds=1, em_words=100, words=100, predicted=20, fitted=40, classes=(2, 3)
    )
    figures = evidence.figures(generated_texts(150), amount)
    assert figures.keys() >= PROMISED
    assert all(math.isfinite(value) for value in figures.values())
