import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.corpus.ragged import offsets_of, ranges


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 7))))
def test_ranges_are_the_concatenated_ranges(parts: list[tuple[int, int]]) -> None:
    starts, lengths = np.array(parts, dtype=np.int64).reshape(-1, 2).T.copy()
    expected = [start + i for start, length in parts for i in range(length)]
    assert ranges(starts, lengths).tolist() == expected
    assert offsets_of(lengths).tolist() == [sum(lengths[:i]) for i in range(len(parts) + 1)]
