"""Support around each word, against the sum that its definition says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.explain.arrays import REACH, nearby


@given(st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=20), min_size=1, max_size=4))
def test_support_of_the_neighbours_in_a_sentence(sentences: list[list[float]]) -> None:
    expected = [
        sum(max(1 - abs(t - s) / REACH, 0) * max(effect, 0) for s, effect in enumerate(sentence))
        for sentence in sentences
        for t in range(len(sentence))
    ]
    lengths = [len(sentence) for sentence in sentences]
    found = nearby(np.concatenate(sentences), np.repeat(np.arange(len(lengths)), lengths))
    np.testing.assert_allclose(found, expected, atol=1e-12)
