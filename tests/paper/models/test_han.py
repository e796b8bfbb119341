"""HAN against its oracle, and what every model promises."""

import pytest
import torch
from hypothesis import given, settings

from emhrnn.paper.models.han import HAN, Pooling
from emhrnn.paper.models.settings import HNAttConfig
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
    separable_batch,
    shapes,
)
from tests.oracles import han as oracle

POOLINGS = ["attention", "mean", "max"]


def small(seed: int = 0, *, pooling: Pooling = "attention", **settings) -> HAN:
    config = HNAttConfig(**PLAIN | {"word_size": 4, "sentence_size": 3, "attention_size": 6} | settings)
    return HAN(config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), pooling=pooling)


@pytest.mark.parametrize("pooling", POOLINGS)
@settings(max_examples=8, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(pooling, lengths, seed) -> None:
    model, batch = enlarged(small(seed, pooling=pooling)), make_batch(lengths, seed)
    output = check_logits_and_gradients(
        model, batch, lambda document: oracle.logits(model, pooling, sentences_of(batch, document))
    )
    if pooling == "attention":
        check_sums_to_one(output.alpha, batch.sentence_offsets)
        check_sums_to_one(output.gamma, batch.document_offsets)
    else:
        assert output.alpha is None
        assert output.gamma is None


@pytest.mark.parametrize("pooling", POOLINGS)
def test_learns_and_survives_saving(pooling) -> None:
    model, batch = small(pooling=pooling, tune_embedding=True, dropout=0.1), separable_batch()
    check_learns(model, batch)
    check_survives_saving(model, small(1, pooling=pooling, tune_embedding=True), batch)


def test_the_seed_decides() -> None:
    batch = make_batch([[3, 2], [4]])
    assert torch.equal(small(3)(batch).logits, small(3)(batch).logits)
    assert not torch.equal(small(3)(batch).logits, small(4)(batch).logits)
    model = small(dropout=0.5)
    assert torch.equal(model(batch, generator_of(0)).logits, model(batch, generator_of(0)).logits)
    assert not torch.equal(model(batch, generator_of(0)).logits, model(batch).logits)
