"""Parts and copies of a batch, against plain lists."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch, BatchPlan, offsets_of, ranges
from emhrnn.errors import ConfigError
from tests.models.examples import make_batch, seeds, sentences_of, shapes

OF_DOCUMENTS = ("rows", "labels", "users", "products", "weights")


def weighted(lengths: list[list[int]], seed: int) -> Batch:
    batch = make_batch(lengths, seed, ids=3)
    return replace(batch, weights=np.random.default_rng(seed).random(batch.n_documents, dtype=np.float32))


def words_of(batch: Batch) -> list[list[list[int]]]:
    return [sentences_of(batch, d) for d in range(batch.n_documents)]


@given(shapes, seeds, st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_copies_are_equal(lengths: list[list[int]], seed: int, times: int) -> None:
    batch = weighted(lengths, seed)
    copies = batch.repeated(times)
    assert words_of(copies) == words_of(batch) * times
    for name in OF_DOCUMENTS:
        assert getattr(copies, name).tolist() == getattr(batch, name).tolist() * times


@given(shapes, seeds, st.data())
@settings(max_examples=30, deadline=None)
def test_a_part_is_some_of_the_documents(lengths: list[list[int]], seed: int, data: st.DataObject) -> None:
    batch = weighted(lengths, seed)
    begin = data.draw(st.integers(0, batch.n_documents - 1))
    end = data.draw(st.integers(begin + 1, batch.n_documents))
    part = batch.part(begin, end)
    assert words_of(part) == words_of(batch)[begin:end]
    for name in OF_DOCUMENTS:
        assert getattr(part, name).tolist() == getattr(batch, name).tolist()[begin:end]


@given(shapes, seeds, st.data())
@settings(max_examples=30, deadline=None)
def test_documents_can_be_taken_in_any_order(lengths: list[list[int]], seed: int, data: st.DataObject) -> None:
    batch = weighted(lengths, seed)
    rows = data.draw(st.lists(st.integers(0, len(batch) - 1), min_size=1, max_size=8))
    some = batch.batch(np.array(rows))
    assert words_of(some) == [words_of(batch)[row] for row in rows]
    assert some.lengths.tolist() == [batch.lengths[row] for row in rows]
    assert some.rows.tolist() == rows
    for name in OF_DOCUMENTS[1:]:
        assert getattr(some, name).tolist() == [getattr(batch, name).tolist()[row] for row in rows]


LENGTHS = st.lists(st.integers(1, 300), max_size=200).map(lambda lengths: np.array(lengths, dtype=np.int64))


def lists(batches) -> list[list[int]]:  # type: ignore[no-untyped-def]
    return [batch.tolist() for batch in batches]


def drawn(lengths: np.ndarray, seed: int = 0, **size: int) -> list[list[int]]:
    return lists(BatchPlan(lengths, **size).batches(np.random.default_rng(seed)))


@given(LENGTHS, st.integers(1, 400), st.integers(0, 9))
def test_every_row_once_within_the_word_budget(lengths: np.ndarray, words: int, seed: int) -> None:
    batches = drawn(lengths, seed, words=words)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or lengths[batch].sum() <= words


@given(LENGTHS, st.integers(1, 70))
def test_every_row_once_by_documents(lengths: np.ndarray, documents: int) -> None:
    for batches in (drawn(lengths, documents=documents), lists(BatchPlan(lengths, documents=documents).in_order())):
        assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
        assert all(1 <= len(batch) <= documents for batch in batches)


def test_word_batches_are_filled() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 5000)
    assert len(drawn(lengths, words=1000)) < 1.15 * lengths.sum() / 1000


def test_batches_have_similar_lengths() -> None:
    lengths = np.random.default_rng(0).integers(1, 1000, 20_000)
    spread = np.mean([np.ptp(lengths[batch]) for batch in drawn(lengths, documents=64)])
    assert spread < 50


def test_a_document_above_the_budget_is_a_batch() -> None:
    lengths = np.array([5, 5000, 5], dtype=np.int64)
    assert lists(BatchPlan(lengths, words=10).in_order()) == [[0, 2], [1]]
    assert [1] in drawn(lengths, words=10)


def test_the_generator_decides() -> None:
    lengths = np.random.default_rng(0).integers(1, 100, 500)
    assert drawn(lengths, 1, words=500) == drawn(lengths, 1, words=500) != drawn(lengths, 2, words=500)


def test_a_batch_is_cut_by_words_or_by_documents() -> None:
    lengths = np.ones(3, dtype=np.int64)
    with pytest.raises(ConfigError, match="give one of them"):
        BatchPlan(lengths, words=5, documents=5)
    with pytest.raises(ConfigError, match="a batch of 0 words is not possible; give 1 or more"):
        BatchPlan(lengths, words=0)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 7))))
def test_ranges_are_the_concatenated_ranges(parts: list[tuple[int, int]]) -> None:
    starts, lengths = np.array(parts, dtype=np.int64).reshape(-1, 2).T.copy()
    expected = [start + i for start, length in parts for i in range(length)]
    assert ranges(starts, lengths).tolist() == expected
    assert offsets_of(lengths).tolist() == [sum(lengths[:i]) for i in range(len(parts) + 1)]
