"""Log-count ratios against a twin that counts in dictionaries, the classifier against scikit-learn's own."""

import dataclasses
import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from emhrnn.corpus.batch import Batch
from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.models import nb_lr, tfidf
from emhrnn.models.fitting import NEVER
from emhrnn.models.nb_lr import GRID, NBLR, expected_shapes, fit_ratios, log_ratio
from emhrnn.models.row import Facts
from emhrnn.models.settings import NBLRConfig
from emhrnn.models.table import MODELS
from emhrnn.models.tfidf import check_keys_fit, frequent_ngrams, ngrams_of
from emhrnn.training.arrays import check_arrays
from tests.models.examples import CLASSES, VOCABULARY, make_batch, seeds, sentences_of, separable_batch, shapes

NGram = tuple[int, ...]


def small(*, classes: int = CLASSES, min_documents: int = 2, **settings) -> NBLR:
    return NBLR(NBLRConfig(**settings), vocabulary=VOCABULARY, classes=classes, min_documents=min_documents)


def spelled(key: int) -> NGram:
    """The words of a key."""
    words = []
    while key >= VOCABULARY:
        words.append(key % VOCABULARY)
        key = key // VOCABULARY - 1
    return (key, *reversed(words))


def ngrams(sentences: list[list[int]], longest: int = 3) -> Counter[NGram]:
    """N-grams of a document without an unknown word, and how often it has each."""
    found: Counter[NGram] = Counter()
    for sentence in sentences:
        for start, length in itertools.product(range(len(sentence)), range(1, longest + 1)):
            ngram = tuple(sentence[start : start + length])
            if len(ngram) == length and 0 not in ngram:
                found[ngram] += 1
    return found


def documents_of(batches: list[Batch]) -> list[Counter[NGram]]:
    return [ngrams(sentences_of(batch, d)) for batch in batches for d in range(batch.n_documents)]


@settings(max_examples=25, deadline=None)
@given(lengths=shapes, seed=seeds, longest=st.integers(1, 3))
def test_occurrences_equal_those_of_the_twin(lengths, seed, longest) -> None:
    batch = make_batch(lengths, seed)
    document, key = ngrams_of(batch, VOCABULARY, longest)
    found = Counter((int(d), spelled(int(k))) for d, k in zip(document, key, strict=True))
    expected: Counter[tuple[int, NGram]] = Counter()
    for d in range(batch.n_documents):
        for ngram, times in ngrams(sentences_of(batch, d), longest).items():
            expected[d, ngram] = times
    assert found == expected


@settings(max_examples=25, deadline=None)
@given(lengths=shapes, seed=seeds)
def test_features_and_ratios_equal_those_of_the_twin(lengths, seed) -> None:
    batches = [make_batch(lengths, seed), make_batch([[4, 3], [2, 6]], seed + 1), make_batch([[6, 6]], seed)]
    documents = documents_of(batches)
    in_documents = Counter(ngram for document in documents for ngram in document)
    expected = {ngram: count for ngram, count in in_documents.items() if count >= 2}
    if not expected:
        return
    keys, counts, n = frequent_ngrams(batches, vocabulary=VOCABULARY, longest=3, min_documents=2, most=10_000)
    features = [spelled(int(key)) for key in keys]
    assert n == len(documents)
    assert dict(zip(features, counts.tolist(), strict=True)) == expected
    model = small()
    model.keys = keys
    present = np.concatenate([model.features(batch).csr().toarray() for batch in batches])
    assert present.tolist() == [[float(ngram in document) for ngram in features] for document in documents]
    rng = np.random.default_rng(seed)
    yes, weights = rng.integers(0, 2, n).astype(np.float64), rng.integers(0, 4, n)
    p = [1 + sum(w for d, y, w in zip(documents, yes, weights, strict=True) if y and g in d) for g in features]
    q = [1 + sum(w for d, y, w in zip(documents, yes, weights, strict=True) if not y and g in d) for g in features]
    ratios = [math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True)]
    ours = log_ratio(sparse.csr_matrix(present), yes, weights.astype(np.float32))
    np.testing.assert_allclose(ours, ratios, rtol=1e-9, atol=1e-12)


def test_merging_does_not_change_the_counts(monkeypatch) -> None:
    batches = [make_batch([[5, 4], [3]], seed) for seed in range(12)]
    chosen = {"vocabulary": VOCABULARY, "longest": 3, "min_documents": 1, "most": 10_000}
    whole = frequent_ngrams(batches, **chosen)
    monkeypatch.setattr(tfidf, "MERGE", 20)
    for ours, expected in zip(frequent_ngrams(batches, **chosen), whole, strict=True):
        assert np.array_equal(ours, expected)


def test_the_most_frequent_features_are_kept() -> None:
    batch = separable_batch(40)
    model = small(max_features=5, C=1.0)
    model.fit([batch])
    counts = Counter(ngram for document in documents_of([batch]) for ngram in document)
    kept = [counts[spelled(int(key))] for key in model.keys]
    assert sorted(kept) == sorted(counts.values())[-5:]


@pytest.mark.parametrize("labels", ["two classes", "three classes", "several labels"])
def test_logits_equal_those_of_scikit_learn(labels) -> None:
    batch = separable_batch(60)
    classes = 2 if labels == "two classes" else CLASSES
    y = batch.labels % classes
    if labels == "several labels":
        y = np.stack([batch.labels == 0, batch.labels != 1, batch.labels == 2], 1).astype(np.float32)
    batch = dataclasses.replace(batch, labels=y)
    model = small(classes=classes, C=0.5)
    model.fit([batch.part(0, 30), batch.part(30, 60)], seed=3)
    features = model.features(batch).csr()
    logits = model.infer(batch).logits
    assert model.chosen_c == 0.5
    for k in range(classes):
        yes = (y == k if y.ndim == 1 else y[:, k] > 0).astype(np.float64)
        scaled = features.toarray() * log_ratio(features, yes)
        theirs = LogisticRegression(C=0.5, solver="liblinear", tol=1e-6).fit(scaled, yes)
        ours = logits[:, 1] - logits[:, 0] if classes == 2 else logits[:, k]
        expected = theirs.decision_function(scaled) * (-1 if classes == 2 and k == 0 else 1)
        np.testing.assert_allclose(ours, expected, atol=0.02)


def test_c_is_chosen_on_documents_that_are_held_out(monkeypatch) -> None:
    """By a search written out: the mean over tenths of right answers, then of log-probabilities."""
    rng = np.random.default_rng(0)
    batch = separable_batch(80)
    noisy = np.where(rng.random(80) < 0.3, rng.integers(0, CLASSES, 80), batch.labels)
    batch = dataclasses.replace(batch, labels=noisy)
    monkeypatch.setattr(nb_lr, "PATIENCE", len(GRID))
    model = small()
    model.fit([batch], seed=5)
    features = model.features(batch).csr()
    scores = []
    for C in GRID:
        right, probable = [], []
        for held in np.array_split(np.random.default_rng(5).permutation(80), 10):
            rest = np.setdiff1d(np.arange(80), held)
            weight, bias = fit_ratios(features[rest], noisy[rest], CLASSES, C, 5)
            logits = torch.from_numpy(features[held] @ weight + bias)
            right.append((logits.argmax(1).numpy() == noisy[held]).mean())
            probable.append(-float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(noisy[held]))))
        scores.append((np.mean(right), np.mean(probable)))
    assert float(model.chosen_c) == pytest.approx(GRID[scores.index(max(scores))])


def test_few_documents_hold_none_out() -> None:
    model = small()
    model.fit([separable_batch(9)])
    assert model.chosen_c == nb_lr.USUAL_C


def test_fits_is_deterministic_and_survives_saving() -> None:
    batch = separable_batch()
    model, again = small(), small()
    for fitted in (model, again):
        fitted.fit([separable_batch(), separable_batch(20, seed=1)], seed=2**40)
    state = model.state_dict()
    assert all(np.array_equal(again.state_dict()[name], array) for name, array in state.items())
    assert np.array_equal(model.infer(batch).logits.argmax(1), batch.labels)
    check_arrays(Path("f"), state, expected_shapes(NBLRConfig(), Facts(classes=CLASSES), VOCABULARY, 0, state))
    loaded = MODELS["nb-lr"].read(NBLRConfig(), Facts(classes=CLASSES), state, [""] * VOCABULARY)
    assert np.array_equal(loaded.infer(batch).logits, model.infer(batch).logits)
    assert len(model.keys) == len(model.weight) < model.max_features  # nothing is padded


def test_a_file_of_another_model_is_refused() -> None:
    model = small(C=1.0)
    model.fit([separable_batch()])
    state = model.state_dict()
    with pytest.raises(CheckpointError, match="the configuration asks for"):
        check_arrays(Path("f"), state, expected_shapes(NBLRConfig(), Facts(classes=CLASSES + 1), 0, 0, state))
    del state["keys"]
    with pytest.raises(CheckpointError, match="tensor keys is missing"):
        check_arrays(Path("f"), state, expected_shapes(NBLRConfig(), Facts(classes=CLASSES), 0, 0, state))


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several labels"])
def test_a_weight_counts_repetitions(several: bool) -> None:
    batch = separable_batch(48)
    if several:
        batch = dataclasses.replace(batch, labels=np.eye(CLASSES, dtype=np.float32)[batch.labels])
    features = small()
    features.keys = frequent_ngrams([batch], vocabulary=VOCABULARY, longest=3, min_documents=2, most=99)[0]
    times = np.arange(48) % 4
    x, y = features.features(batch).csr(), batch.labels
    used = np.flatnonzero(times)
    repeated = np.repeat(np.arange(48), times)
    weighted = fit_ratios(x[used], y[used], CLASSES, 1.0, 0, times[used].astype(np.float32))
    for ours, theirs in zip(weighted, fit_ratios(x[repeated], y[repeated], CLASSES, 1.0, 0), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=0.02)
    model = small(C=1.0)
    model.fit([dataclasses.replace(batch, weights=(times > 0).astype(np.float32))])
    weight, bias = fit_ratios(model.features(batch).csr()[used], y[used], CLASSES, 1.0, 0)
    np.testing.assert_allclose(model.weight, weight, atol=1e-6)
    np.testing.assert_allclose(model.bias, bias, atol=1e-6)


def test_a_class_without_documents_is_never_predicted() -> None:
    model = small(classes=CLASSES + 2, C=1.0)
    batch = separable_batch()
    model.fit([batch])
    assert model.bias[CLASSES:].tolist() == [NEVER] * 2
    assert model.infer(batch).logits.argmax(1).max() < CLASSES


def test_a_document_of_unknown_words_gets_the_bias() -> None:
    batch = make_batch([[3], [2]])
    batch.words[:] = 0
    model = small()
    model.fit([separable_batch()])
    assert (model.infer(batch).logits == model.bias).all()


def test_many_classes_have_fewer_features() -> None:
    assert small(max_features=10**8).max_features == nb_lr.MOST_WEIGHTS // CLASSES
    assert NBLR(NBLRConfig(), vocabulary=10, classes=1000).max_features * 1000 == nb_lr.MOST_WEIGHTS


def test_no_ngram_of_two_documents() -> None:
    batch = Batch.from_lists([[[1, 2]], [[3, 4]], [[0, 0]]], labels=[0, 1, 0])
    with pytest.raises(DataError, match=r"is in 2 of the 3 documents or more.*lower data\.min_count"):
        small().fit([batch])
    with pytest.raises(DataError, match="no documents to fit"):
        small().fit([])


def test_a_vocabulary_whose_triples_cannot_be_numbered() -> None:
    check_keys_fit(2**21 - 1, 3)
    with pytest.raises(ConfigError, match=r"2,097,152 words; set data\.max_vocabulary"):
        NBLR(NBLRConfig(), vocabulary=2**21, classes=2)
    last = 2**21 - 2
    batch = Batch.from_lists([[[last, last, last]]])
    _, keys = ngrams_of(batch, 2**21 - 1, 3)
    assert (keys > 0).all()
    assert len(np.unique(keys)) == 3
