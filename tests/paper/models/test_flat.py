"""CNN-word and SSWE against their oracles; vectors that learn polarity, the classifier on top; bag-of-means against
counting."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.models.flat import (
    SSWE,
    BagOfMeans,
    BagOfMeansConfig,
    CNNWord,
    CNNWordConfig,
    SSWEConfig,
    WindowScorer,
    _neighbours,
    hybrid_loss,
    polarity,
)
from tests.models.examples import (
    CLASSES,
    PLAIN,
    check_logits_and_gradients,
    check_survives_saving,
    enlarged,
    generator_of,
    make_batch,
    make_table,
    sentences_of,
    separable_batch,
    words_of,
)
from tests.oracles import cnn_word, sswe


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
    check_logits_and_gradients(model, batch, lambda document: cnn_word.logits(model, sentences_of(batch, document)))


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


def small_sswe(**settings) -> SSWE:
    return SSWE(SSWEConfig(**settings), table=make_table(), classes=CLASSES)


def test_loss_equals_the_oracle() -> None:
    scores = torch.randn(20, 2, 2, generator=generator_of(0))
    delta = [-1, 0, 1, 1] * 5
    ours = hybrid_loss(scores[:, 0] - scores[:, 1], torch.tensor(delta, dtype=torch.float32), torch.ones(20))
    pairs = [tuple(map(tuple, pair)) for pair in scores.tolist()]
    assert ours.item() == pytest.approx(sswe.hybrid_loss(pairs, delta), rel=1e-5)


def test_scores_equal_the_oracle() -> None:
    scorer, x = WindowScorer(5, generator=generator_of(0)), 3 * make_table()
    window = torch.tensor([[0, 3, 4], [5, 5, 1]])
    slow = torch.stack([sswe.scores(scorer, list(x[row])) for row in window])
    torch.testing.assert_close(scorer(x, window), slow)


def test_polarity_is_the_side_of_the_middle() -> None:
    assert polarity(np.arange(5), 5).tolist() == [-1, -1, 0, 1, 1]
    assert polarity(np.arange(2), 2).tolist() == [-1, 1]


def test_windows_stay_within_sentences() -> None:
    batch = Batch.from_lists([[[1, 2, 3], [4]], [[5, 6]]])
    assert _neighbours(batch).tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 0], [0, 4, 0], [0, 5, 6], [5, 6, 0]]


def test_features_are_min_max_and_mean() -> None:
    model, batch = small_sswe(), make_batch([[3, 2], [1]])
    for document, row in enumerate(model.features(batch)):
        x = model.vectors[words_of(batch, document)]
        torch.testing.assert_close(row, torch.cat([x.min(0).values, x.max(0).values, x.mean(0)]))


def test_fits_and_survives_saving() -> None:
    batch = separable_batch()
    model = small_sswe(fit_epochs=2, C=10.0)
    model.fit([batch], seed=1)
    assert not torch.equal(model.vectors, make_table())
    assert np.array_equal(model(batch).logits.argmax(1).numpy(), batch.labels)
    check_survives_saving(model, small_sswe(), batch)
    again = small_sswe(fit_epochs=2, C=10.0)
    again.fit([batch], seed=1)
    assert torch.equal(again.weight, model.weight)


def test_given_vectors_are_kept_without_epochs() -> None:
    model = small_sswe(fit_epochs=0)
    model.fit([separable_batch()])
    assert torch.equal(model.vectors, make_table())


def test_multi_label_data_have_no_polarity() -> None:
    batch = make_batch([[2], [3]])
    several = Batch(
        words=batch.words,
        sentence_offsets=batch.sentence_offsets,
        document_offsets=batch.document_offsets,
        rows=batch.rows,
        labels=np.eye(2, CLASSES, dtype=np.float32),
    )
    with pytest.raises(ConfigError, match="learns from ordered classes"):
        small_sswe().fit([several])


def test_an_empty_vocabulary() -> None:
    batch = Batch.from_lists([[[0, 0]], [[0]]], labels=[0, 1])
    with pytest.raises(DataError, match=r"the vocabulary is empty.*; give more documents, or lower data.min_count"):
        SSWE(SSWEConfig(), table=make_table()[:1], classes=CLASSES).fit([batch])


def small_bag(**settings) -> BagOfMeans:
    return BagOfMeans(BagOfMeansConfig(**settings), table=make_table(), classes=CLASSES)


def test_features_are_counts_of_the_nearest_mean() -> None:
    model, batch = small_bag(means=4), separable_batch(9)
    model.fit([batch])
    for document, row in enumerate(model(batch).v.numpy()):
        counts = np.zeros(4)
        for word in words_of(batch, document):
            counts[int(model.nearest[word])] += 1
        np.testing.assert_allclose(row, counts / np.sqrt((counts**2).sum()), atol=1e-6)


def test_words_that_are_near_share_a_mean() -> None:
    table = make_table()
    table[4] = table[3] + 1e-3
    model = BagOfMeans(BagOfMeansConfig(means=5), table=table, classes=CLASSES)
    model.fit([separable_batch()])
    assert model.nearest[3] == model.nearest[4]


def test_bag_of_means_fits_and_survives_saving() -> None:
    batch = separable_batch()
    model = small_bag(C=100.0)
    model.fit([batch], seed=1)
    assert np.array_equal(model(batch).logits.argmax(1).numpy(), batch.labels)
    check_survives_saving(model, small_bag(), batch)
