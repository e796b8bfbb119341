"""Words tied to a class, and documents drawn from a stream."""

import math

import numpy as np
import pytest

from emhrnn.corpus.batch import Batch
from emhrnn.paper.analysis.ties import Ties
from emhrnn.paper.sampling import Reservoir
from emhrnn.text import Vocabulary


def test_scores_are_those_of_the_two_by_two_table() -> None:
    vocabulary = Vocabulary.from_words(["good", "bad", "the", "!"])
    good, bad, the, mark = (vocabulary.id_of(word) for word in ("good", "bad", "the", "!"))
    documents = [[[the, good, good, mark]]] * 4 + [[[the, bad]]] * 5 + [[[the, good], [bad]]]
    labels = np.array([1] * 4 + [0] * 6)
    ties = Ties(vocabulary, 2)
    ties.add(Batch.from_lists(documents[:3]), labels[:3])
    ties.add(Batch.from_lists(documents[3:]), labels[3:])
    a, b, c, d = 4.5, 0.5, 1.5, 5.5  # good: in 4 of 4 documents of class 1 and in 1 of 6 others
    expected = math.log(a * d / (b * c)) / math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    assert ties.scores(1)[good] == pytest.approx(expected)
    assert ties.scores(1)[bad] < 0 < ties.scores(0)[bad]
    assert ties.top(1, 5) == ["good"]  # not "!", which is no word, nor "the", which is in all documents
    assert ties.top(0, 5)[0] == "bad"


def test_a_draw_is_the_same_for_the_same_seed_and_fair() -> None:
    def draw(seed: int, size: int = 3) -> list[int]:
        reservoir = Reservoir[int](size, seed)
        for number in range(10):
            reservoir.offer(number)
        return reservoir.drawn

    assert draw(1) == draw(1)
    assert draw(1) == sorted(draw(1))
    assert draw(0, size=20) == list(range(10))
    counts = np.bincount([number for seed in range(600) for number in draw(seed)], minlength=10)
    assert counts.sum() == 1800
    assert abs(counts - 180).max() < 60  # 5 standard deviations
