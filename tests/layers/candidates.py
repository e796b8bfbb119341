"""Ragged batches of few different words, so that phrases come again, for the tests of phrases and of their evidence."""

import numpy as np
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from tests.layers.shapes import lengths

ragged = st.lists(lengths, min_size=1, max_size=5)  # words of sentences of documents
K_OF_TESTS = st.sampled_from([1, 2, 3, 4, 8])


def few_words(lengths: list[list[int]], seed: int, *, words: int | None = None) -> Batch:
    """Documents whose sentences have these lengths; about every fourth word is unknown. With `words`, ids below it."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, words, 3) if words else np.arange(1, 4)
    return Batch.from_lists(
        [[np.append(0, ids)[rng.integers(0, 4, n)].tolist() for n in document] for document in lengths]
    )
