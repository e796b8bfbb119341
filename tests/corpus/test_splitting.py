import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.corpus.splitting import stratified_split
from emhrnn.errors import ConfigError, DataError


@given(st.lists(st.integers(0, 4), min_size=30, max_size=300), st.floats(0.1, 0.6), st.integers(0, 99))
def test_parts_are_disjoint_complete_and_stratified(groups: list[int], fraction: float, seed: int) -> None:
    labels = np.array(groups, dtype=np.int64)
    rest, held = stratified_split(labels, fraction, np.random.default_rng(seed))
    assert sorted([*rest, *held]) == list(range(len(groups)))
    for group in set(groups):
        size = groups.count(group)
        taken = int((labels[held] == group).sum())
        assert taken < size
        assert abs(taken - size * fraction) <= 1 + 1e-9 or taken == size - 1


def test_the_generator_decides() -> None:
    labels = np.arange(100) % 3
    first = stratified_split(labels, 0.2, np.random.default_rng(1))[1]
    assert first.tolist() == stratified_split(labels, 0.2, np.random.default_rng(1))[1].tolist()
    assert first.tolist() != stratified_split(labels, 0.2, np.random.default_rng(2))[1].tolist()
    assert len(first) == 20


def test_impossible_splits() -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        stratified_split(np.zeros(5, dtype=np.int64), 1.0, np.random.default_rng(0))
    with pytest.raises(DataError, match="each of the 5 documents has a label of its own"):
        stratified_split(np.arange(5), 0.1, np.random.default_rng(0))
    with pytest.raises(DataError, match="too few to split off 10%"):
        stratified_split(np.zeros(3, dtype=np.int64), 0.1, np.random.default_rng(0))
