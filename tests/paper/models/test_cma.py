"""CMA against its oracle, and what it does without ids."""

import pytest
import torch
from hypothesis import given, settings

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.models.cma import CMA, CMAConfig
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
from tests.oracles import cma as oracle

IDS = 4


def small(seed: int = 0, *, users: int = IDS, **settings) -> CMA:
    config = CMAConfig(**PLAIN | {"id_size": 3, "word_size": 4, "sentence_size": 5, "attention_size": 6} | settings)
    return CMA(
        config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), users=users, products=IDS
    )  # fmt: skip


@pytest.mark.parametrize("ids", [True, False])
@settings(max_examples=8, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(ids, lengths, seed) -> None:
    model, batch = enlarged(small(seed, ids=ids)), make_batch(lengths, seed, ids=IDS)
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
    batch.users[:] = torch.arange(12) % CLASSES
    batch.labels[:] = batch.users
    settings = {"tune_embedding": True, "word_size": 8}
    model = small(**settings)
    # the ids only steer attention, so the two words must differ for them to matter
    batch.words[1::2] = 4
    check_learns(model, batch, steps=100, learning_rate=0.03)
    check_survives_saving(model, small(1, **settings), batch)


def test_without_ids_the_batch_needs_none() -> None:
    with_ids, without = make_batch([[3], [2, 4]], ids=IDS), make_batch([[3], [2, 4]])
    assert torch.equal(small(ids=False, users=0)(with_ids).logits, small(ids=False, users=0)(without).logits)


def test_errors() -> None:
    with pytest.raises(ConfigError, match=r"reads user ids and the data has none; .* or set model.ids=false"):
        small(users=0)
    with pytest.raises(DataError, match="reads user ids and the data has none; give data with a user column"):
        small()(make_batch([[3]]))
    batch = make_batch([[3]], ids=IDS)
    batch.products[:] = IDS
    with pytest.raises(
        DataError, match="product id 4 where the model knows 4; ids that training has not seen must be -1"
    ):
        small()(batch)
