"""Taking words out, against plain lists."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.explain.removal import UNKNOWN_WORD, without
from tests.models.examples import make_batch, seeds, sentences_of, shapes


def phrases_left(words: list[int], z: list[bool], keep: list[bool]) -> list[list[int]]:
    """The phrases of one sentence without the words that are taken out."""
    phrases: list[list[int]] = [[]]
    for word, ends, kept in zip(words, z, keep, strict=True):
        if kept:
            phrases[-1].append(word)
        if ends:
            phrases.append([])
    return [phrase for phrase in phrases if phrase]


@given(shapes, seeds, st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_what_is_left_is_what_lists_say(lengths: list[list[int]], seed: int, share: float) -> None:
    batch, rng = make_batch(lengths, seed), np.random.default_rng(seed)
    z = (rng.random(batch.n_words) < 0.4) | batch.sentence_final
    keep = rng.random(batch.n_words) < share
    smaller, left = without(batch, z, keep)
    begin = 0
    for d in range(batch.n_documents):
        expected = []
        for words in sentences_of(batch, d):
            span = slice(begin, begin + len(words))
            expected.append(phrases_left(words, z[span].tolist(), keep[span].tolist()))
            begin += len(words)
        expected = [phrases for phrases in expected if phrases] or [[[UNKNOWN_WORD]]]
        assert sentences_of(smaller, d) == [[word for phrase in phrases for word in phrase] for phrases in expected]
        offset = int(smaller.word_offsets[d])
        ends = left[offset : int(smaller.word_offsets[d + 1])]
        lengths_left = [len(phrase) for phrases in expected for phrase in phrases]
        assert np.diff(np.flatnonzero(ends), prepend=-1).tolist() == lengths_left
    assert left[smaller.sentence_final].all()
