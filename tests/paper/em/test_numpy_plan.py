"""Sorting helpers of the integer plan."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.paper.em.numpy_plan import by_level, distinct, position_keys, ranges

integers = st.lists(st.integers(-5, 5), max_size=30).map(lambda values: np.array(values, dtype=np.int64))


@given(integers)
def test_distinct_names_every_key_by_one_index(keys):
    chosen, ids = distinct(keys)
    assert (np.diff(chosen) > 0).all()
    assert (keys[chosen][ids] == keys).all()
    assert len(set(keys[chosen].tolist())) == len(chosen)


@given(integers.map(abs))
def test_by_level_is_stable(level):
    assert by_level(level).tolist() == sorted(range(len(level)), key=level.tolist().__getitem__)


def test_by_level_of_very_deep_trees():
    level = np.array([70_000, 3, 70_000, 1])
    assert by_level(level).tolist() == [3, 1, 0, 2]


def test_ranges():
    offsets, owner, value = ranges(np.array([4, 9, 0]), np.array([2, 0, 3]))
    assert offsets.tolist() == [0, 2, 2, 5]
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert value.tolist() == [4, 5, 0, 1, 2]


def test_position_keys_are_fixed_and_distinct():
    keys = position_keys(100_000)
    assert len(np.unique(keys)) == 100_000
    assert (position_keys(10) == keys[:10]).all()
