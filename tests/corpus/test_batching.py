import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.corpus.batching import BatchPlan
from emhrnn.errors import ConfigError

LENGTHS = st.lists(st.integers(1, 300), max_size=200).map(lambda lengths: np.array(lengths, dtype=np.int64))


def lists(batches) -> list[list[int]]:  # type: ignore[no-untyped-def]
    return [batch.tolist() for batch in batches]


@given(LENGTHS, st.integers(1, 400), st.integers(0, 9))
def test_every_row_once_within_the_word_budget(lengths: np.ndarray, words: int, epoch: int) -> None:
    batches = lists(BatchPlan(lengths, words=words).epoch(epoch))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or lengths[batch].sum() <= words


@given(LENGTHS, st.integers(1, 70))
def test_every_row_once_by_documents(lengths: np.ndarray, documents: int) -> None:
    plan = BatchPlan(lengths, documents=documents)
    for batches in (lists(plan.epoch(0)), lists(plan.in_order())):
        assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
        assert all(1 <= len(batch) <= documents for batch in batches)


def test_word_batches_are_filled() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 5000)
    batches = list(BatchPlan(lengths, words=1000).epoch(0))
    assert len(batches) < 1.15 * lengths.sum() / 1000


def test_batches_have_similar_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 1000, 20_000)
    spread = np.mean([np.ptp(lengths[batch]) for batch in BatchPlan(lengths, documents=64).epoch(0)])
    assert spread < 50


def test_a_document_above_the_budget_is_a_batch() -> None:
    lengths = np.array([5, 5000, 5], dtype=np.int64)
    assert lists(BatchPlan(lengths, words=10).in_order()) == [[0, 2], [1]]
    assert [1] in lists(BatchPlan(lengths, words=10).epoch(0))


def test_the_same_epoch_gives_the_same_batches_and_another_gives_others() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)
    first = lists(BatchPlan(lengths, words=500, seed=1).epoch(3))
    assert first == lists(BatchPlan(lengths, words=500, seed=1).epoch(3))
    assert first != lists(BatchPlan(lengths, words=500, seed=1).epoch(4))
    assert first != lists(BatchPlan(lengths, words=500, seed=2).epoch(3))


def test_resuming_inside_an_epoch() -> None:
    plan = BatchPlan(np.random.default_rng(0).integers(1, 100, 500), words=500)
    assert lists(plan.epoch(2))[7:] == lists(plan.epoch(2, start=7))


def test_a_batch_is_cut_by_words_or_by_documents() -> None:
    lengths = np.ones(3, dtype=np.int64)
    with pytest.raises(ConfigError, match="give one of them"):
        BatchPlan(lengths, words=5, documents=5)
    with pytest.raises(ConfigError, match="a batch of 0 words is not possible; give 1 or more"):
        BatchPlan(lengths, words=0)
