"""TF-IDF against scikit-learn's own, on words written out."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.feature_extraction.text import TfidfVectorizer

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.models import tfidf
from emhrnn.models.row import Facts
from emhrnn.models.settings import TfIdfConfig, TfIdfSVMConfig
from emhrnn.models.table import MODELS
from emhrnn.models.tfidf import NO_KEY, TfIdf, expected_shapes
from tests.models.examples import (
    CLASSES,
    VOCABULARY,
    make_batch,
    seeds,
    sentences_of,
    separable_batch,
    shapes,
)


def small(kind="logistic", *, min_documents: int = 2, **settings) -> TfIdf:
    config = (TfIdfConfig if kind == "logistic" else TfIdfSVMConfig)(**{"max_features": 400} | settings)
    return TfIdf(config, vocabulary=VOCABULARY, classes=CLASSES, kind=kind, min_documents=min_documents)


def terms(sentences: list[list[int]]) -> list[str]:
    """Words and pairs of one document, spelled."""
    words = [str(word) for sentence in sentences for word in sentence if word]
    pairs = [
        f"{first} {second}"
        for sentence in sentences
        for first, second in itertools.pairwise(sentence)
        if first and second
    ]
    return words + pairs


def spelled(key: int) -> str:
    return str(key) if key < VOCABULARY else f"{key // VOCABULARY - 1} {key % VOCABULARY}"


@settings(max_examples=15, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_features_equal_those_of_scikit_learn(lengths, seed) -> None:
    batches = [make_batch(lengths, seed), make_batch([[4, 3], [2]], seed + 1)]
    documents = [sentences_of(batch, d) for batch in batches for d in range(batch.n_documents)]
    model = small(min_documents=1)
    model._choose_features(batches)
    theirs = TfidfVectorizer(analyzer=terms, sublinear_tf=True)
    expected = theirs.fit_transform(documents).toarray()
    keys = [spelled(int(key)) for key in model.keys if key != NO_KEY]
    assert set(keys) == set(theirs.vocabulary_)
    ours = np.concatenate([model.features(batch).csr().toarray() for batch in batches])[:, : len(keys)]
    np.testing.assert_allclose(ours, expected[:, [theirs.vocabulary_[key] for key in keys]], atol=1e-6)


def test_the_most_frequent_features_are_kept() -> None:
    batch = separable_batch(40)
    everything, few = small(min_documents=1), small(min_documents=1, max_features=5)
    everything._choose_features([batch])
    few._choose_features([batch])
    order = np.sort(everything.idf[everything.keys != NO_KEY])
    assert np.sort(few.idf).tolist() == order[:5].tolist()


@pytest.mark.parametrize("kind", ["logistic", "svm"])
def test_fits_and_survives_saving(kind) -> None:
    batch = separable_batch()
    model = small(kind, C=10.0)
    model.fit([separable_batch(), separable_batch(20, seed=1)])
    assert np.array_equal(model.infer(batch).logits.argmax(1), batch.labels)
    facts, saved = Facts(classes=CLASSES), model.state_dict()
    config = TfIdfConfig(max_features=400)
    assert {name: array.shape for name, array in saved.items()} == expected_shapes(config, facts, 0, 0, saved)
    loaded = MODELS[{"logistic": "tfidf-lr", "svm": "tfidf-svm"}[kind]].read(config, facts, saved, [""] * VOCABULARY)
    assert np.array_equal(loaded.infer(batch).logits, model.infer(batch).logits)


def test_logits_equal_those_of_scipy() -> None:
    """Also where the products are added up in portions, within a document."""
    batch = make_batch([[5, 4], [3], [6, 6]], 3)
    model = small(min_documents=1)
    model.fit([separable_batch(), dataclasses.replace(batch, labels=np.array([0, 1, 2]))])
    expected = model.features(batch).csr() @ model.weight.T + model.bias
    for at_once in (tfidf.AT_ONCE, 4 * CLASSES):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tfidf, "AT_ONCE", at_once)
            np.testing.assert_allclose(model.infer(batch).logits, expected, atol=1e-6)


def test_a_document_of_unknown_words_gets_the_bias() -> None:
    batch = make_batch([[3], [2]])
    batch.words[:] = 0
    model = small()
    model.fit([separable_batch()])
    assert (model.infer(batch).logits == model.bias).all()


def test_no_ngram_of_two_documents() -> None:
    batch = Batch.from_lists([[[1, 2]], [[3, 4]], [[0, 0]]], labels=[0, 1, 0])
    with pytest.raises(DataError, match="no n-gram of 1 to 2 words is in 2 of the 3 documents or more"):
        small().fit([batch])
