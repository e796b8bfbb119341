"""The table of all segmentations against the engine, the oracle against plain loops over all of them."""

import math

import numpy as np
import pytest
import torch

from emhrnn.models.output import log_likelihood
from emhrnn.paper.em.blocks import bit_table, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.likelihood import configuration_likelihood
from emhrnn.paper.simulation.world import CLASSES, all_log_p, block_likelihood, consult, make_world, of_labels
from tests.oracles.brute_force import free_positions, settings

DOCUMENTS = 3


@pytest.fixture(scope="module")
def world():
    return make_world("state", 1, train=2, test=DOCUMENTS)


@pytest.fixture(scope="module")
def table(world):
    with torch.no_grad():
        return of_labels(all_log_p(world.teacher, world.test, world.teacher.words(world.test)), world.test)


@pytest.mark.parametrize(
    "choose",
    [
        exact_blocks,
        lambda batch: window_blocks(batch, 2),
        lambda batch: window_blocks(batch, 5),
        lambda batch: local_blocks(batch, generator=np.random.default_rng(0)),
    ],
)
def test_blocks_read_from_the_table_as_the_engine_computes_them(world, table, choose):
    batch = world.test
    z = (np.random.default_rng(1).random(batch.n_words) < 0.5) | batch.sentence_final
    blocks = choose(batch)
    with torch.no_grad():
        computed = configuration_likelihood(world.teacher, batch, world.teacher.words(batch), z, blocks)
    torch.testing.assert_close(block_likelihood(table, batch, z, blocks), computed, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_full_passes_give_the_same_likelihoods(world, table):
    teacher, batch, blocks = world.teacher, world.test, exact_blocks(world.test)
    columns = []
    for bits in bit_table(blocks.length):
        z = batch.sentence_final.copy()
        z[blocks.positions] = bits
        logits = teacher.encode(batch, teacher.words(batch), z).logits
        columns.append(log_likelihood(logits, torch.from_numpy(batch.labels)))
    torch.testing.assert_close(torch.stack(columns, dim=1), table, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_oracle_against_plain_enumeration(world):
    teacher, batch = world.teacher, world.test
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
            right += (gamma > 0.5) == world.z_test[t]
    oracle = consult(teacher, batch, world.z_test)
    assert oracle.information == pytest.approx(information / DOCUMENTS, abs=1e-4)
    assert oracle.free == pytest.approx(right / (8 * DOCUMENTS))
    assert oracle.all == pytest.approx((right + 2 * DOCUMENTS) / (10 * DOCUMENTS))
    counts = np.bincount(batch.labels)
    assert oracle.label_entropy == pytest.approx(-sum(c / DOCUMENTS * math.log2(c / DOCUMENTS) for c in counts if c))
