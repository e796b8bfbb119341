"""Blocks: which positions they list, and what they refuse (docs/paper.md 1.6, A29)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.em.blocks import (
    bit_table,
    covered,
    current,
    draw_blocks,
    exact_blocks,
    local_blocks,
    window_blocks,
    write,
)
from tests.oracles.brute_force import free_positions
from tests.paper.em.examples import make_batch, random_z, seeds, shapes


def assert_well_formed(batch, blocks):
    assert (np.diff(blocks.documents) >= 0).all()
    for row, document in zip(blocks.positions, blocks.documents, strict=True):
        present = row[row >= 0]
        assert (row[: len(present)] >= 0).all(), "absent slots come last"
        assert (np.diff(present) > 0).all()
        assert set(present) <= set(free_positions(batch, document))


@given(shapes(), seeds)
@settings(max_examples=30, deadline=None)
def test_exact_lists_all_free_positions(lengths, seed):
    batch = make_batch(lengths, seed)
    blocks = exact_blocks(batch)
    assert_well_formed(batch, blocks)
    for document, row in enumerate(blocks.positions):
        assert row[row >= 0].tolist() == free_positions(batch, document)


@given(shapes(), seeds, st.integers(1, 7))
@settings(max_examples=50, deadline=None)
def test_windows_cover_every_free_position_once(lengths, seed, length):
    batch = make_batch(lengths, seed)
    blocks = window_blocks(batch, length)
    assert_well_formed(batch, blocks)
    listed = np.sort(blocks.positions[blocks.positions >= 0])
    assert listed.tolist() == np.flatnonzero(~batch.sentence_final).tolist()
    assert set(blocks.documents) == set(range(batch.n_documents))
    for row, document in zip(blocks.positions, blocks.documents, strict=True):
        window = (row[row >= 0] - batch.word_offsets[document]) // length
        assert len(set(window)) <= 1


@given(shapes(), seeds, st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_drawn_windows_are_some_of_all(lengths, seed, count, length):
    batch = make_batch(lengths, seed)
    every = window_blocks(batch, length)
    drawn = draw_blocks(every, count, generator=np.random.default_rng(seed))
    assert_well_formed(batch, drawn)
    assert np.bincount(drawn.documents).tolist() == np.minimum(count, np.bincount(every.documents)).tolist()
    rows = [tuple(row) for row in drawn.positions]
    assert len(set(rows)) == len(rows) or (drawn.positions < 0).all(axis=1).any()  # without replacement
    assert set(rows) <= {tuple(row) for row in every.positions}


def test_all_windows_are_drawn_equally_often():
    every = window_blocks(make_batch([[21], [3, 4]]), 4)
    generator = np.random.default_rng(0)
    times = np.zeros(28)
    for _ in range(2000):
        drawn = draw_blocks(every, 1, generator=generator)
        times[drawn.positions[:, 0]] += 1
    first = every.positions[:, 0]
    expected = 2000 / np.bincount(every.documents)[every.documents]
    assert (np.abs(times[first] - expected) < 5 * np.sqrt(expected)).all()


@given(shapes(), seeds, st.integers(1, 12), st.integers(1, 7))
@settings(max_examples=50, deadline=None)
def test_local_blocks_stay_in_their_document(lengths, seed, count, length):
    batch = make_batch(lengths, seed)
    blocks = local_blocks(batch, count, length, generator=np.random.default_rng(seed))
    assert_well_formed(batch, blocks)
    assert np.bincount(blocks.documents).tolist() == np.minimum(count, batch.document_lengths).tolist()
    present = blocks.positions >= 0
    spread = np.where(present, blocks.positions, 0).max(1) - np.where(present, blocks.positions, 1 << 40).min(1)
    assert (spread < length).all()


def test_local_centres_are_distinct_and_clipped_at_both_ends():
    batch = make_batch([[7]])
    blocks = local_blocks(batch, 7, 3, generator=np.random.default_rng(0))
    assert blocks.positions.tolist() == [
        [0, 1, -1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 5], [4, 5, -1], [5, -1, -1],
    ]  # fmt: skip


def test_a_block_may_cross_a_sentence_end():
    batch = make_batch([[3, 3]])
    assert exact_blocks(batch).positions.tolist() == [[0, 1, 3, 4]]
    assert window_blocks(batch, 4).positions.tolist() == [[0, 1, 3, -1], [4, -1, -1, -1]]


def test_weights_decide_where_centres_fall():
    batch = make_batch([[50], [50]])
    weights = np.full(100, 1e-9)
    weights[[10, 20, 60, 70]] = 1.0
    blocks = local_blocks(batch, 2, 1, generator=np.random.default_rng(0), weights=weights)
    assert blocks.positions.ravel().tolist() == [10, 20, 60, 70]


def test_the_generator_decides():
    batch = make_batch([[30, 40]])
    draws = [local_blocks(batch, generator=np.random.default_rng(seed)).positions for seed in (1, 1, 2)]
    assert (draws[0] == draws[1]).all()
    assert (draws[0] != draws[2]).any()


def test_exact_on_a_long_document_names_it_and_the_alternatives():
    batch = make_batch([[3], [10, 14]])
    with pytest.raises(DataError, match=r"row 1 has 24 words, 22 free positions; at most 20 .*--set em.estep=local"):
        exact_blocks(batch)
    assert exact_blocks(batch, limit=22).length == 22


@pytest.mark.parametrize("length", [0, 17])
def test_block_lengths_out_of_range_are_refused(length):
    batch = make_batch([[3]])
    with pytest.raises(ConfigError, match=f"block length {length}.*use 1 to 16"):
        window_blocks(batch, length)
    with pytest.raises(ConfigError, match=f"block length {length}"):
        local_blocks(batch, 1, length, generator=np.random.default_rng(0))


def test_no_blocks_are_refused():
    with pytest.raises(ConfigError, match="at least 1"):
        local_blocks(make_batch([[3]]), 0, generator=np.random.default_rng(0))


def test_bits_and_configurations():
    assert bit_table(2).tolist() == [[False, False], [True, False], [False, True], [True, True]]
    batch = make_batch([[3, 2], [1]])
    blocks = exact_blocks(batch)
    z = random_z(batch)
    assert (write(z, blocks, current(blocks, z)) == z).all()
    assert write(z, blocks, np.array([5, 0])).tolist() == [True, False, True, True, True, True]


def test_covered():
    batch = make_batch([[3, 2], [1]])
    assert covered(exact_blocks(batch), batch.n_words).tolist() == [True, True, False, True, False, False]
