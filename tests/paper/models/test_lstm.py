"""The LSTM baseline against its oracle."""

from hypothesis import given, settings

from emhrnn.paper.models.lstm import LSTMConfig, MeanLSTM
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
from tests.oracles import lstm as oracle


def small(seed: int = 0, **settings) -> MeanLSTM:
    sizes = {"word_size": 4} | settings
    return MeanLSTM(LSTMConfig(**PLAIN | sizes), table=make_table(seed), classes=CLASSES, generator=generator_of(seed))


@settings(max_examples=10, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(lengths, seed) -> None:
    model, batch = enlarged(small(seed)), make_batch(lengths, seed)
    check_logits_and_gradients(model, batch, lambda document: oracle.logits(model, sentences_of(batch, document)))


def test_learns_and_survives_saving() -> None:
    model, batch = small(tune_embedding=True, dropout=0.1, word_size=8), separable_batch()
    check_learns(model, batch, steps=100)
    check_survives_saving(model, small(1, tune_embedding=True, word_size=8), batch)
