import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.layers.order import Order
from tests.layers.shapes import lengths, offsets_of


def test_the_picture_of_the_docstring() -> None:
    order = Order(np.array([0, 2, 5, 6]))
    assert order.sequences.tolist() == [1, 0, 2]
    assert order.batch_sizes.tolist() == [3, 2, 1]
    assert order.rows.tolist() == [2, 0, 5, 3, 1, 4]
    assert order.previous.tolist() == [0, 1, 3]


@given(lengths=lengths, reverse=st.booleans())
def test_every_row_follows_its_sequence(lengths: list[int], reverse: bool) -> None:
    offsets = offsets_of(lengths)
    order = Order(offsets, reverse=reverse)
    assert order.rows[order.inverse].tolist() == list(range(offsets[-1]))
    assert int(order.batch_sizes.sum()) == offsets[-1]
    first = len(lengths)
    step = -1 if reverse else 1
    assert (order.rows[first:] == order.rows[order.previous] + step).all()
    starts = offsets[1:] - 1 if reverse else offsets[:-1]
    assert sorted(order.rows[:first].tolist()) == sorted(starts.tolist())


def test_no_sequences() -> None:
    order = Order(np.array([0]))
    assert len(order.rows) == len(order.batch_sizes) == len(order.previous) == 0
