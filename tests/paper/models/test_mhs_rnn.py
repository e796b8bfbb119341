"""MHS-RNN against its oracle: states, boundaries and straight-through gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.layers.order import Order
from emhrnn.paper.models.hm_rnn import multiscale_states
from emhrnn.paper.models.mhs_rnn import MHSRNN, AttentionConfig, HierarchyConfig
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_logits_and_gradients,
    check_sums_to_one,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    seeds,
    sentences_of,
    shapes,
)
from tests.oracles import mhs_rnn as oracle


def small(seed: int = 0, *, attention: bool = False, **settings) -> MHSRNN:
    sizes = PLAIN | {"word_size": 4, "sentence_size": 3} | settings
    config = AttentionConfig(**sizes, attention_size=6) if attention else HierarchyConfig(**sizes)
    return MHSRNN(config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed))


@pytest.mark.parametrize("attention", [False, True])
@settings(max_examples=10, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_equals_the_oracle(attention, lengths, seed) -> None:
    model, batch = enlarged(small(seed, attention=attention), 1.3), make_batch(lengths, seed)
    model.set_epoch(seed % 20)
    output = check_logits_and_gradients(
        model, batch, lambda document: oracle.logits(model, sentences_of(batch, document))
    )
    z = [
        z_t.item()
        for document in range(batch.n_documents)
        for words in sentences_of(batch, document)
        for z_t in oracle.sentence_states(model, words)[2]
    ]
    assert np.array_equal(output.z, np.array(z, dtype=bool))
    if attention:
        check_sums_to_one(output.gamma, batch.document_offsets)
        weights = output.alpha.clone()
        weights[torch.from_numpy(output.z)] += output.beta
        check_sums_to_one(weights, batch.sentence_offsets)
    else:
        assert output.alpha is None
        assert output.gamma is None


def test_detectors_say_both_yes_and_no_in_the_test_above() -> None:
    output = enlarged(small(1), 1.3)(make_batch([[6, 6], [6, 6]], 1))
    assert 0 < (output.pi > 0.5).double().mean() < 1


def test_phrases_do_not_begin_silent() -> None:
    """With weights of the usual size their states were a fifth of those of the words, or less."""
    model, batch = small(word_size=50), make_batch([[20, 30], [40], [10, 10, 10]])
    h, _ = multiscale_states(
        model.input(model.embedding(torch.from_numpy(batch.words))),
        [model.word_weight.repeat(1, 2), model.phrase_weight], [model.phrase_bias], model.slope,
        Order(batch.sentence_offsets), model.wiring, forced=torch.from_numpy(batch.sentence_final),
    )  # fmt: skip
    of_words, of_phrases = h.detach()[torch.from_numpy(batch.sentence_final)].square().mean((0, 2)).sqrt()
    assert of_phrases > of_words
