"""Basis customisation against its oracle."""

import numpy as np
from hypothesis import given, settings

from emhrnn.paper.models.basis_cust import BasisCust, BasisCustConfig
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_learns,
    check_logits_and_gradients,
    check_sums_to_one,
    check_survives_saving,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    seeds,
    sentences_of,
    shapes,
)
from tests.oracles import basis_cust as oracle

IDS = 4


def small(seed: int = 0, **settings) -> BasisCust:
    config = BasisCustConfig(**PLAIN | {"id_size": 3, "bases": 2, "word_size": 4, "attention_size": 6} | settings)
    return BasisCust(
        config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), users=IDS, products=IDS
    )  # fmt: skip


@settings(max_examples=6, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(lengths, seed) -> None:
    model, batch = enlarged(small(seed)), make_batch(lengths, seed, ids=IDS)
    output = check_logits_and_gradients(
        model,
        batch,
        lambda d: oracle.logits(model, sentences_of(batch, d), int(batch.users[d]), int(batch.products[d])),
    )
    check_sums_to_one(output.alpha, batch.sentence_offsets)
    check_sums_to_one(output.gamma, batch.document_offsets)


def test_learns_from_ids_alone_and_survives_saving() -> None:
    """All documents say the same; only who wrote it tells the class."""
    batch = make_batch([[2]] * 12, ids=IDS)
    batch.words[:] = 3
    batch.users[:] = np.arange(12) % CLASSES
    batch.labels[:] = batch.users
    model = small(bases=3, id_size=4)
    check_learns(model, batch, steps=100, learning_rate=0.05)
    check_survives_saving(model, small(1, bases=3, id_size=4), batch)
