"""Conv-GRNN and LSTM-GRNN against their oracle."""

import pytest
from hypothesis import given, settings

from emhrnn.paper.models.grnn import GRNN, GRNNConfig
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_learns,
    check_logits_and_gradients,
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
from tests.oracles import grnn as oracle

KINDS = ["convolution", "lstm"]


def small(seed: int = 0, *, sentences: str, **settings) -> GRNN:
    config = GRNNConfig(**PLAIN | {"word_size": 4, "sentence_size": 3} | settings)
    return GRNN(
        config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), sentences=sentences
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(kind, lengths, seed) -> None:
    model, batch = enlarged(small(seed, sentences=kind)), make_batch(lengths, seed)
    check_logits_and_gradients(model, batch, lambda document: oracle.logits(model, kind, sentences_of(batch, document)))


@pytest.mark.parametrize("kind", KINDS)
def test_learns_and_survives_saving(kind) -> None:
    settings = {"sentences": kind, "tune_embedding": True, "word_size": 8}
    model, batch = small(dropout=0.1, **settings), separable_batch()
    check_learns(model, batch, steps=100)
    check_survives_saving(model, small(1, **settings), batch)
