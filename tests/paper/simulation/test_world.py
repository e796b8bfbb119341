"""The laws of the simulated world; the oracle and the table of all segmentations against plain enumeration."""

import math

import numpy as np
import pytest
import torch

from emhrnn.errors import ConfigError
from emhrnn.models.model import log_likelihood
from emhrnn.paper.em.blocks import bit_table, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.likelihood import configuration_likelihood
from emhrnn.paper.simulation.world import (
    CLASSES,
    END,
    READINGS,
    all_log_p,
    block_likelihood,
    consult,
    make_world,
    of_labels,
    take,
)
from tests.oracles.brute_force import free_positions, settings

TRAIN, TEST = 400, 100


@pytest.fixture(scope="module", params=READINGS)
def world(request):
    return make_world(request.param, 3, train=TRAIN, test=TEST)


def test_two_sentences_of_five_tokens_the_last_of_which_is_common_and_ends_a_phrase(world):
    for batch, z, documents in ((world.train, world.z_train, TRAIN), (world.test, world.z_test, TEST)):
        assert batch.n_documents == documents
        assert (batch.sentence_lengths == 5).all()
        assert (np.diff(batch.document_offsets) == 2).all()
        assert ((batch.words == END) == batch.sentence_final).all()
        assert z[batch.sentence_final].all()


def test_about_half_of_the_free_positions_end_a_phrase(world):
    free = ~world.train.sentence_final
    assert world.z_train[free].mean() == pytest.approx(0.5, abs=0.05)


def test_labels_are_balanced(world):
    labels = np.concatenate([world.train.labels, world.test.labels])
    share = np.bincount(labels, minlength=CLASSES) / len(labels)
    assert share == pytest.approx([1 / CLASSES] * CLASSES, abs=0.06)


def test_labels_follow_from_the_true_boundaries(world):
    """The teacher, given the true z, foretells labels it has not drawn from much better than with other z."""
    batch, y = world.test, torch.from_numpy(world.test.labels)
    other = (np.random.default_rng(0).random(batch.n_words) < 0.5) | batch.sentence_final
    with torch.no_grad():
        losses = [
            torch.nn.functional.cross_entropy(world.teacher.encode(batch, world.teacher.words(batch), z).logits, y)
            for z in (world.z_test, other)
        ]
    assert losses[0] < losses[1] - 0.2


def test_the_same_seed_gives_the_same_world(world):
    again = make_world(world.reading, 3, train=TRAIN, test=TEST)
    assert (again.train.words == world.train.words).all()
    assert (again.train.labels == world.train.labels).all()
    assert (again.z_test == world.z_test).all()
    other = make_world(world.reading, 4, train=TRAIN, test=TEST)
    assert (other.train.labels != world.train.labels).any()


def test_no_token_of_a_test_document_was_seen_in_training_unless_the_vocabulary_is_finite(world):
    seen = np.intersect1d(world.train.words, world.test.words)
    if world.reading == "vocabulary":
        assert len(seen) > 2
    else:
        assert seen.tolist() == [END]


def test_in_the_vocabulary_each_type_has_one_z():
    world = make_world("vocabulary", 0, train=TRAIN, test=TEST)
    words = np.concatenate([world.train.words, world.test.words])
    z = np.concatenate([world.z_train, world.z_test])
    pairs = np.unique(np.stack([words, z]), axis=1)
    assert pairs.shape[1] == len(np.unique(words))


def test_take_keeps_words_and_labels_together():
    world = make_world("vocabulary", 0, train=20, test=5)
    some = take(world.train, np.array([7, 2]))
    assert some.labels.tolist() == world.train.labels[[7, 2]].tolist()
    assert some.words.reshape(2, 10).tolist() == world.train.words.reshape(20, 10)[[7, 2]].tolist()


def test_an_unknown_reading_is_named_with_the_known_ones():
    with pytest.raises(ConfigError, match="'states'; use one of independent, state, vocabulary"):
        make_world("states", 0, train=2, test=2)


DOCUMENTS = 3


@pytest.fixture(scope="module")
def small_world():
    return make_world("state", 1, train=2, test=DOCUMENTS)


@pytest.fixture(scope="module")
def table(small_world):
    with torch.no_grad():
        return of_labels(
            all_log_p(small_world.teacher, small_world.test, small_world.teacher.words(small_world.test)),
            small_world.test,
        )


@pytest.mark.parametrize(
    "choose",
    [
        exact_blocks,
        lambda batch: window_blocks(batch, 2),
        lambda batch: window_blocks(batch, 5),
        lambda batch: local_blocks(batch, generator=np.random.default_rng(0)),
    ],
)
def test_blocks_read_from_the_table_as_the_engine_computes_them(small_world, table, choose):
    batch = small_world.test
    z = (np.random.default_rng(1).random(batch.n_words) < 0.5) | batch.sentence_final
    blocks = choose(batch)
    with torch.no_grad():
        computed = configuration_likelihood(small_world.teacher, batch, small_world.teacher.words(batch), z, blocks)
    torch.testing.assert_close(block_likelihood(table, batch, z, blocks), computed, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_full_passes_give_the_same_likelihoods(small_world, table):
    teacher, batch, blocks = small_world.teacher, small_world.test, exact_blocks(small_world.test)
    columns = []
    for bits in bit_table(blocks.length):
        z = batch.sentence_final.copy()
        z[blocks.positions] = bits
        logits = teacher.encode(batch, teacher.words(batch), z).logits
        columns.append(log_likelihood(logits, torch.from_numpy(batch.labels)))
    torch.testing.assert_close(torch.stack(columns, dim=1), table, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_oracle_against_plain_enumeration(small_world):
    teacher, batch = small_world.teacher, small_world.test
    information, right = 0.0, 0
    for d in range(DOCUMENTS):
        positions = free_positions(batch, d)
        p = {
            bits: torch.softmax(teacher.encode(batch, teacher.words(batch), z).logits[d].double(), 0).tolist()
            for bits, z in settings(batch.sentence_final, positions)
        }
        mean = [sum(q[y] for q in p.values()) / len(p) for y in range(CLASSES)]
        information += sum(
            q[y] * math.log2(q[y] / mean[y]) for q in p.values() for y in range(CLASSES) if q[y] > 0
        ) / len(p)
        y = batch.labels[d]
        total = sum(q[y] for q in p.values())
        for slot, t in enumerate(positions):
            gamma = sum(q[y] for bits, q in p.items() if bits[slot]) / total
            right += (gamma > 0.5) == small_world.z_test[t]
    oracle = consult(teacher, batch, small_world.z_test)
    assert oracle.information == pytest.approx(information / DOCUMENTS, abs=1e-4)
    assert oracle.free == pytest.approx(right / (8 * DOCUMENTS))
    assert oracle.all == pytest.approx((right + 2 * DOCUMENTS) / (10 * DOCUMENTS))
    counts = np.bincount(batch.labels)
    assert oracle.label_entropy == pytest.approx(-sum(c / DOCUMENTS * math.log2(c / DOCUMENTS) for c in counts if c))
