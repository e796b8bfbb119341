"""Attention beside chance and the paper's descent, against plain loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from emhrnn.paper.analysis.analyse import Tally, important_words, word_weights
from emhrnn.paper.explanations.attention import Levels
from emhrnn.text import Vocabulary
from tests.explain.documents import softmaxes
from tests.oracles.attention_analysis import Sentence, beside_chance, descent


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[list[int]], int, bool]:
    """Words of each sentence of each document, a seed, and whether words have weights beside phrases."""
    lengths = st.lists(st.integers(1, 7), min_size=1, max_size=4)
    return draw(st.lists(lengths, min_size=1, max_size=4)), draw(st.integers(0, 2**20)), draw(st.booleans())


def random_levels(shape: list[list[int]], seed: int, direct: bool) -> tuple[Batch, Levels]:
    generator = np.random.default_rng(seed)
    batch = Batch.from_lists([[generator.integers(0, 5, words).tolist() for words in some] for some in shape])
    z = (generator.random(batch.n_words) > 0.6) | batch.sentence_final
    phrases = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentences = np.searchsorted(phrases, batch.sentence_offsets)

    def weights(offsets: np.ndarray) -> np.ndarray:
        scores = generator.integers(0, 3, offsets[-1]).astype(float)  # few values, so that there are ties
        return softmaxes(scores, offsets).astype(np.float32)

    alpha, beta, gamma = weights(phrases), weights(sentences), weights(batch.document_offsets)
    own = generator.random(batch.n_words).round(1).astype(np.float32) if direct else None
    return batch, Levels(z, alpha, beta, gamma, own)


def nested(batch: Batch, levels: Levels) -> list[list[Sentence]]:
    phrases = [0, *(np.flatnonzero(levels.z) + 1).tolist()]
    documents = []
    for first, last in pairwise(batch.document_offsets.tolist()):
        sentences: list[Sentence] = []
        for i in range(first, last):
            start, stop = batch.sentence_offsets[i : i + 2].tolist()
            inside = []
            for k in range(phrases.index(start), phrases.index(stop)):
                direct = [None] * len(levels.alpha) if levels.direct is None else levels.direct.tolist()
                words = [(float(levels.alpha[t]), direct[t]) for t in range(phrases[k], phrases[k + 1])]
                inside.append((float(levels.beta[k]), words))
            sentences.append((float(levels.gamma[i]), inside))
        documents.append(sentences)
    return documents


@given(shapes())
@settings(max_examples=40, deadline=None)
def test_descent_is_the_papers(given: tuple[list[list[int]], int, bool]) -> None:
    batch, levels = random_levels(*given)
    found = important_words(levels, batch) - batch.word_offsets[:-1]
    assert found.tolist() == [descent(document) for document in nested(batch, levels)]


@given(shapes())
@settings(max_examples=40, deadline=None)
def test_weights_beside_chance(given: tuple[list[list[int]], int, bool]) -> None:
    batch, levels = random_levels(*given)
    found = word_weights(levels, batch)
    expected = np.array([row for document in nested(batch, levels) for row in beside_chance(document)])
    assert np.allclose(found.weight, expected[:, 0])
    assert found.siblings.tolist() == expected[:, 1].tolist()
    assert np.allclose(found.in_sentence, expected[:, 2])
    assert np.allclose(found.lift, expected[:, 0] * expected[:, 1])
    assert np.allclose(found.chance, 1 / expected[:, 1])


@given(shapes(), shapes())
@settings(max_examples=15, deadline=None)
def test_tally_holds_the_means_of_each_word(
    one: tuple[list[list[int]], int, bool], other: tuple[list[list[int]], int, bool]
) -> None:
    tally = Tally(Vocabulary.from_words(["a", "b", "c", "d"]))
    rows: dict[int, list[tuple[float, int, float]]] = {}
    lengths: list[int] = []
    for shape in (one, other):
        batch, levels = random_levels(*shape)
        tally.add(batch, levels)
        told = [row for document in nested(batch, levels) for row in beside_chance(document)]
        for word, row in zip(batch.words.tolist(), told, strict=True):
            rows.setdefault(word, []).append(row)
        lengths += np.diff(np.flatnonzero(levels.z), prepend=-1).tolist()
    for word, found in rows.items():
        name = tally.vocabulary.words[word]
        attention = tally.attention(name)
        weight, siblings, share = (np.array(column, dtype=float) for column in zip(*found, strict=True))
        assert attention.count == len(found)
        assert attention.weight == pytest.approx(weight.mean(), rel=1e-6)
        assert attention.chance == pytest.approx((1 / siblings).mean())
        assert attention.lift == pytest.approx((weight * siblings).mean(), rel=1e-6)
        assert attention.in_sentence == pytest.approx(share.mean(), rel=1e-6)
        assert attention.alone == pytest.approx((siblings == 1).mean())
    phrases = tally.phrase_lengths()
    assert (phrases.mean, phrases.shortest, phrases.longest) == (np.mean(lengths), min(lengths), max(lengths))


def test_indifferent_attention_is_at_chance() -> None:
    """Equal weights: whatever the lengths of phrases, every lift is 1. Raw weights are not."""
    batch = Batch.from_lists([[[1, 2, 3, 4, 1]]])
    z = np.array([True, False, False, False, True])
    levels = Levels(
        z, np.array([1, 0.25, 0.25, 0.25, 0.25], np.float32), np.ones(2, np.float32) / 2, np.ones(1, np.float32)
    )
    tally = Tally(Vocabulary.from_words(["a", "b", "c", "d"]))
    tally.add(batch, levels)
    assert tally.attention("a").lift == 1
    assert tally.attention("a").weight == 0.625
    assert tally.attention("a").alone == 0.5
    assert tally.average().lift == 1
    assert tally.attention("nowhere") == type(tally.attention("a"))("nowhere", 0)
