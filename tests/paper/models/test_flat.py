"""CNN-word against its oracle."""

import pytest
import torch
from pydantic import ValidationError

from emhrnn.paper.models.flat import CNNWord, CNNWordConfig
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_logits_and_gradients,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    sentences_of,
)
from tests.oracles import cnn_word as oracle


def small(seed: int = 0, **settings) -> CNNWord:
    sizes = {"features": 4, "dense_size": 6, "length": 150} | settings
    return CNNWord(
        CNNWordConfig(**PLAIN | sizes), table=make_table(seed), classes=CLASSES, generator=generator_of(seed)
    )


def test_equals_the_oracle_on_short_and_long_documents() -> None:
    model, batch = enlarged(small()), make_batch([[70, 60, 40], [3], [100, 50]])
    generator = generator_of(1)
    with torch.no_grad():  # taps that are equal, as at first, make equal frames, and the pooling may take either
        for convolution in model.convolutions:
            convolution.weight.add_(torch.randn(convolution.weight.shape, generator=generator) / 10)
    check_logits_and_gradients(model, batch, lambda document: oracle.logits(model, sentences_of(batch, document)))


def test_words_behind_the_length_are_not_read() -> None:
    model = small()
    long, cut = make_batch([[160]]), make_batch([[160]])
    cut.words[150:] = 0
    assert (model(long).logits == model(cut).logits).all()


def test_at_first_it_has_no_regard_to_place() -> None:
    model = small()
    first = model.first.weight.view(6, 4, -1)  # (dense_size, features, frames)
    for weight in (first, *(convolution.weight for convolution in model.convolutions)):
        assert torch.equal(weight, weight[:, :, :1].expand_as(weight))
        assert weight.sum(1).abs().max() < 1e-6


def test_too_short() -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 123"):
        small(length=122)
