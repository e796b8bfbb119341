"""Scores of candidate phrases and GRU states in NumPy: both back ends against slow formulas and the torch layers."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emhrnn.layers.order import Order
from emhrnn.layers.phrase_scores import (
    GRUWeights,
    PhraseEncoder,
    add_cohesion,
    linear,
    segment_means,
    segment_sums,
    table_scores,
)
from emhrnn.layers.phrases import NONE
from emhrnn.layers.recurrent import GRU
from tests.back_ends import check_threads_change_no_bit
from tests.layers.candidates import K_OF_TESTS, few_words, ragged
from tests.layers.shapes import offsets_of, seeds
from tests.oracles import phrase_evidence as oracle

classes = st.sampled_from([1, 2, 3, 5, 20])
TOLERANCE = {"atol": 1e-5, "rtol": 1e-5}


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


@given(st.integers(0, 60), K_OF_TESTS, classes, st.integers(0, 9), seeds)
@settings(max_examples=20)
def test_table_scores_and_cohesion(back_end, words, K, C, size, seed):
    rng = np.random.default_rng(seed)
    table, rows, weights = normal(rng, size, C), rng.integers(NONE, size, (words, K)), normal(rng, words, K)
    expected = oracle.gathered(table, rows, weights)
    scores = table_scores(table, rows, weights)
    np.testing.assert_allclose(scores, expected, **TOLERANCE)
    turned = table_scores(table, np.asfortranarray(rows), np.asfortranarray(weights))
    assert np.array_equal(turned, scores)
    cohesion = normal(rng, words, K)
    np.testing.assert_allclose(add_cohesion(scores, cohesion), expected + cohesion[:, :, None], **TOLERANCE)


@given(ragged, K_OF_TESTS, st.sampled_from([1, 5, 24, 32]), classes, seeds)
@example([[6, 3], [9], [12, 1]], 4, 24, 20, 0)
@settings(max_examples=30)
def test_the_encoder_equals_the_formula(back_end, lengths, K, H, C, seed):
    batch, rng = few_words(lengths, seed), np.random.default_rng(seed)
    vectors = normal(rng, int(batch.words.max()) + 1, 7)
    encoder = PhraseEncoder(normal(rng, K * H, 7), normal(rng, K, H), normal(rng, H, C))
    projected, before = encoder.project(vectors), normal(rng, batch.n_words, K, C)
    np.testing.assert_allclose(projected.reshape(len(vectors), -1), vectors @ encoder.projection.T, **TOLERANCE)
    scores = encoder.add_scores(before.copy(), projected, batch.words, batch.sentence_offsets)
    arrays = (array.astype(np.float64) for array in (projected, encoder.bias, encoder.output))
    expected = oracle.encoder_scores(*arrays, batch.words.tolist(), batch.sentence_offsets.tolist())
    np.testing.assert_allclose(scores - before, expected, atol=1e-4, rtol=1e-4)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=90), st.sampled_from([1, 7, 16, 40, 100]), seeds)
@settings(max_examples=20)
def test_means_and_sums_of_segments(back_end, lengths, D, seed):
    rng, offsets = np.random.default_rng(seed), offsets_of(lengths)
    table, rows = normal(rng, 11, D), rng.integers(0, 11, int(offsets[-1]))
    parts = [table[rows[begin:end]] for begin, end in pairwise(offsets)]
    expected = [part.mean(axis=0) for part in parts]
    np.testing.assert_allclose(segment_means(table, rows, offsets), expected, **TOLERANCE)
    sums = segment_sums(table[rows].astype(np.float64), offsets[:-1])
    np.testing.assert_allclose(sums, [part.sum(axis=0) for part in parts], **TOLERANCE)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.sampled_from([1, 4, 32]), seeds, st.booleans())
@settings(max_examples=20)
def test_states_of_the_gru_equal_the_torch_layer(back_end, lengths, H, seed, reverse):
    offsets, generator = offsets_of(lengths), torch.Generator().manual_seed(seed)
    layer = GRU(6, H, generator=generator)
    with torch.no_grad():
        layer.bias.normal_(generator=generator)
        x = torch.randn(int(offsets[-1]), 6, generator=generator)
        expected = layer(x, Order(offsets, reverse=reverse)).numpy()
        weights = GRUWeights(*(part.numpy() for part in (layer.input_weight, layer.state_weight, layer.bias)))
        states = weights.states(x.numpy(), Order(offsets, reverse))
    np.testing.assert_allclose(states, expected, **TOLERANCE)


def test_the_number_of_threads_does_not_change_a_bit():
    rng = np.random.default_rng(0)
    x, weight, table = normal(rng, 900, 40), normal(rng, 70, 40), normal(rng, 50, 3)
    rows, weights = rng.integers(NONE, 50, (30_000, 4)), normal(rng, 30_000, 4)
    check_threads_change_no_bit(lambda: (linear(x, weight), table_scores(table, rows, weights)))


def test_wrong_rows_places_offsets_and_shapes_are_errors_and_not_crashes(back_end):
    rng = np.random.default_rng(0)
    table, rows, weights = normal(rng, 5, 3), rng.integers(NONE, 5, (6, 2)), normal(rng, 6, 2)
    for wrong in (5, NONE - 1):
        with pytest.raises(IndexError, match="for 5 rows"):
            table_scores(table, np.where(rows == rows.max(), wrong, rows), weights)
    with pytest.raises(IndexError, match="weights of shape"):
        inspect.unwrap(table_scores)(table, rows, weights[1:])
    with pytest.raises(IndexError, match="cohesion of shape"):
        inspect.unwrap(add_cohesion)(normal(rng, 6, 2, 3), weights[1:])
    encoder = PhraseEncoder(normal(rng, 8, 7), normal(rng, 2, 4), normal(rng, 4, 3))
    projected, scores, offsets = normal(rng, 5, 2, 4), normal(rng, 6, 2, 3), np.array([0, 4, 6])
    add = inspect.unwrap(PhraseEncoder.add_scores)
    for arguments in (
        (scores, projected, np.full(6, 5), offsets),
        (scores, projected, np.zeros(6, dtype=np.int64), offsets[:2]),
        (scores[:, :1], projected, np.zeros(6, dtype=np.int64), offsets),
        (scores, projected[:, :1], np.zeros(6, dtype=np.int64), offsets),
    ):
        with pytest.raises(IndexError):
            add(encoder, *arguments)
    for wrong, ends in ((np.array([0, 5]), [0, 2]), (np.array([0, 4]), [0, 1]), (np.array([-1, 4]), [0, 2])):
        with pytest.raises(IndexError):
            segment_means(table, wrong, np.array(ends))
    for starts in ([1, 2], [0, 3, 2], [0, 9]):
        with pytest.raises(IndexError):
            segment_sums(np.zeros((6, 2)), np.array(starts))
    with pytest.raises(IndexError, match="x of shape"):
        inspect.unwrap(linear)(normal(rng, 3, 4), normal(rng, 3, 5))
