"""Parts and copies of a batch, against plain lists."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
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
