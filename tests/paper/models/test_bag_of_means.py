"""Bag-of-means against counting by hand."""

import numpy as np

from emhrnn.paper.models.bag_of_means import BagOfMeans, BagOfMeansConfig
from tests.models.examples import CLASSES, check_survives_saving, make_table, separable_batch, words_of


def small(**settings) -> BagOfMeans:
    return BagOfMeans(BagOfMeansConfig(**settings), table=make_table(), classes=CLASSES)


def test_features_are_counts_of_the_nearest_mean() -> None:
    model, batch = small(means=4), separable_batch(9)
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


def test_fits_and_survives_saving() -> None:
    batch = separable_batch()
    model = small(C=100.0)
    model.fit([batch], seed=1)
    assert np.array_equal(model(batch).logits.argmax(1).numpy(), batch.labels)
    check_survives_saving(model, small(), batch)
