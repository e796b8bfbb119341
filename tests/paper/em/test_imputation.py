"""What stands outside the blocks."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.corpus.batch import Batch
from emhrnn.paper.em.imputation import (
    above,
    rate_shift,
    rate_threshold,
    sample_prior,
)
from tests.paper.em.examples import make_batch, seeds, shapes


def test_documents_of_weight_0_are_not_there() -> None:
    batch = make_batch([[3, 4], [5, 2], [6]])
    a = torch.randn(batch.n_words, generator=torch.Generator().manual_seed(0))
    weighted = replace(batch, weights=np.array([1, 0, 2], dtype=np.float32))
    left, of_left = make_batch([[3, 4], [6]]), torch.cat([a[:7], a[14:]])
    assert rate_threshold(weighted, a, 0.5) == rate_threshold(left, of_left, 0.5) != rate_threshold(batch, a, 0.5)
    assert rate_shift(weighted, a, 0.5) == rate_shift(left, of_left, 0.5) != rate_shift(batch, a, 0.5)


def test_the_papers_rule_can_lose_every_boundary_and_the_rate_cannot():
    batch = make_batch([[50, 40], [60]])
    a = torch.randn(150, generator=torch.Generator().manual_seed(0)) - 5  # no pi over one half
    assert (above(batch, a) == batch.sentence_final).all()
    threshold = rate_threshold(batch, a, 0.23)
    assert threshold is not None
    kept = above(batch, a, threshold)
    assert kept.mean() == pytest.approx(0.23, abs=0.01)
    assert kept[batch.sentence_final].all()


@given(shapes(), seeds)
@settings(max_examples=20, deadline=None)
def test_any_rate_can_be_asked_for(lengths, seed):
    batch = make_batch(lengths, seed)
    a = torch.from_numpy(np.random.default_rng(seed).normal(size=batch.n_words))
    for rate in (0.0, 0.3, 0.5, 0.8, 1.0):
        threshold = rate_threshold(batch, a, rate)
        assert (threshold is None) == batch.sentence_final.all()
        if threshold is not None:
            z = above(batch, a, threshold)
            assert z[batch.sentence_final].all()
            assert abs(z.sum() - max(rate * batch.n_words, batch.n_sentences)) <= 1


def test_sentences_of_one_word_say_nothing_about_the_threshold():
    assert rate_threshold(make_batch([[1, 1], [1]]), torch.full((3,), -1.2), 0.23) is None


def test_prior_samples_have_the_priors_rate():
    batch = make_batch([[500]] * 8)
    z = sample_prior(batch, torch.full((4000,), -1.0), np.random.default_rng(0))
    assert z.mean() == pytest.approx(1 / (1 + np.e), abs=0.03)
    assert z[batch.sentence_final].all()


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_shift_makes_the_mean_of_pi_the_rate(rate: float) -> None:
    rng = np.random.default_rng(3)
    batch = Batch.from_lists([[rng.integers(0, 9, 30).tolist() for _ in range(20)]])
    a = torch.from_numpy(rng.normal(1.5, 2.0, batch.n_words))
    shift = rate_shift(batch, a, rate)
    pi = torch.sigmoid(a - shift).numpy()
    pi[batch.sentence_final] = 1
    assert pi.mean() == pytest.approx(rate, abs=1e-5)


def test_no_shift_where_sentence_ends_alone_are_too_many() -> None:
    batch = Batch.from_lists([[[1, 2], [3, 4]]])
    assert rate_shift(batch, torch.zeros(4), 0.23) == 0
