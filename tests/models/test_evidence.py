"""Phrase evidence: against enumeration of all segmentations, its explanation by one of them, and what it leaves out."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.torch import load, save

from emhrnn import cores
from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.layers.evidence import seen_evidence
from emhrnn.layers.phrases import repeats
from emhrnn.models import evidence_reader as module
from emhrnn.models.evidence import Evidence
from emhrnn.models.evidence_reader import Reading, capped, phrases_of
from emhrnn.models.segmentation import rule
from emhrnn.models.settings import OVERLAPPING, EvidenceConfig
from tests.back_ends import on_kernels, threads_kept
from tests.models.examples import CLASSES, SIZE, VOCABULARY, check_learns, generator_of, make_table, seeds
from tests.oracles import evidence as oracle

WORDS = ["<unk>", ",", "the", ".", *(f"w{i}" for i in range(VOCABULARY - 4))]
ragged = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=3), min_size=2, max_size=6)
PARTS: dict[str, dict[str, Any]] = {
    "all": {"pauses": WORDS, "sentence_weights": 3},
    "no counts": {"counts": False},
    "no tables": {"tables": False, "presence": 0.0},
    "no encoder": {"encoder_size": 0, "presence": 0.5},
    "encoder alone": {"counts": False, "tables": False},
    "counts alone": {"tables": False, "encoder_size": 0, "longest": 3},
    "words": {"longest": 1, "pauses": WORDS},
    "weights alone": {"encoder_size": 0, "sentence_weights": 3},
}


def make_batch(lengths: list[list[int]], seed: int, *, several: bool = False, weighted: bool = False) -> Batch:
    """Few different words, some of them unknown, so that phrases come again."""
    rng = np.random.default_rng(seed)
    words = np.append(np.zeros(2, dtype=np.int64), rng.integers(1, VOCABULARY, 5))
    batch = Batch.from_lists([[rng.choice(words, n).tolist() for n in document] for document in lengths])
    n = len(lengths)
    labels = (rng.random((n, CLASSES)) < 0.4).astype(np.float32) if several else rng.integers(0, CLASSES, n)
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n).astype(np.float32) if weighted else None
    if weights is not None and not weights.any():
        weights[:] = 1
    return replace(batch, labels=labels, weights=weights)


def small(
    seed: int = 0,
    *,
    several: bool = False,
    authors: tuple[int, int] | None = None,
    pauses: list[str] | None = None,
    rule: Callable[[Batch], np.ndarray] | None = None,
    **settings: Any,
) -> Evidence:
    """With `pauses`, which are the words; with `authors`, their numbers; with a `rule` for its segmentation."""
    sizes = {"longest": 4, "presence": 1.0, "encoder_size": 3, "sentence_weights": 0, "least_documents": 1}
    config = EvidenceConfig(
        **{"table_documents": 1, "pauses": pauses is not None, "ids": authors is not None, **sizes, **settings}
    )
    model = Evidence(
        config, table=make_table(seed), classes=CLASSES, generator=generator_of(seed), vocabulary=pauses or (),
        several=several, authors=authors or (0, 0),
    )  # fmt: skip
    model.rule = rule
    return model


def moved(model: Evidence, seed: int) -> Evidence:
    """Every parameter elsewhere, so that each part matters."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if model.tables or name != "ngrams.table":  # which then stays 0
                size = 0.4 if parameter.ndim else 0.05  # lambda is exponential in them
                parameter += torch.empty_like(parameter).normal_(0, size, generator=generator_of(seed))
    return model


def counted_of(batch: Batch, *, K: int = 4, least: int = 1, most: int = 10**9) -> oracle.Counted:
    assert batch.labels is not None
    labels = batch.labels if batch.labels.ndim == 2 else np.eye(CLASSES)[batch.labels]
    weights = np.ones(batch.n_documents) if batch.weights is None else batch.weights
    return oracle.Counted.of(oracle.documents_of(batch), labels.astype(float), weights.astype(float), K, least, most)


def trained(batch: Batch, seed: int, **settings: Any) -> tuple[Evidence, oracle.Counted]:
    model = small(seed, **settings)
    with contextlib.suppress(DataError):  # where every word is unknown
        model.count([batch])
    return moved(model, seed), counted_of(batch, K=model.longest)


def unlabelled(batch: Batch) -> Batch:
    return replace(batch, labels=None, weights=None)


# ------------------------------------------------------------------------------------------------------------- logits


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
@pytest.mark.parametrize("parts", PARTS)
@given(lengths=ragged, seed=seeds)
@settings(max_examples=4)
def test_logits_equal_enumeration(back_end, parts, several, lengths, seed):
    batch, other = (make_batch(lengths, seed, several=several, weighted=True), make_batch(lengths[:2], seed + 1))
    model, counted = trained(batch, seed, several=several, **PARTS[parts])
    for one in (batch, other):
        with torch.no_grad():
            logits = model(unlabelled(one)).logits
        expected = [oracle.logits(model, counted, document) for document in oracle.documents_of(one)]
        torch.testing.assert_close(logits.double(), torch.from_numpy(np.stack(expected)), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
@pytest.mark.parametrize("parts", ["all", "no counts", "no tables", "counts alone"])
@given(lengths=ragged, seed=seeds)
@settings(max_examples=4)
def test_training_leaves_each_document_out_of_the_counts(back_end, parts, several, lengths, seed):
    batch = make_batch(lengths, seed, several=several, weighted=True)
    model, counted = trained(batch, seed, several=several, **PARTS[parts])
    logits = model(batch, generator_of(0)).logits.detach()
    labels = batch.labels if several else np.eye(CLASSES)[batch.labels]
    expected = [
        oracle.logits(model, counted, document, (label, float(weight)))
        for document, label, weight in zip(oracle.documents_of(batch), labels, batch.weights, strict=True)
    ]
    torch.testing.assert_close(logits.double(), torch.from_numpy(np.stack(expected)), atol=2e-4, rtol=1e-4)


@given(lengths=ragged, seed=seeds, several=st.booleans())
@settings(max_examples=10)
def test_the_folded_table_is_the_training_formula_without_own(back_end, lengths, seed, several):
    batch = make_batch(lengths, seed, several=several)
    model, _ = trained(batch, seed, several=several, encoder_size=0, presence=0.5)
    rows = model.reader.index.rows(batch, model.longest)
    weights = np.maximum(repeats(batch, rows), 1) ** -0.5 * (rows >= 0)
    with torch.no_grad():
        expected = seen_evidence(
            model.ngrams.table, model.scale, model.ngrams.statistics(), rows=torch.from_numpy(rows),
            weights=torch.from_numpy(weights.astype(np.float32)), word_offsets=torch.from_numpy(batch.word_offsets),
            own=None, mixing=model.mixing,
        )  # fmt: skip
    np.testing.assert_allclose(model.reader.evidence(batch), expected, atol=1e-5, rtol=1e-5)


def test_a_phrase_of_one_document_says_nothing_about_its_label_in_training() -> None:
    """Of counts alone, without a table: what its own label taught a phrase must not come back."""
    documents = [[[4, 5, 6]], [[7, 8]], [[7, 8]], [[7, 9]]]
    batch = Batch.from_lists(documents, [0, 1, 1, 2])
    model = small(tables=False, encoder_size=0)
    model.count([batch])
    scores = model.training_evidence(batch, generator_of(0))
    torch.testing.assert_close(scores[:3], torch.zeros_like(scores[:3]))  # as if no document had them
    remaining = Batch.from_lists(documents[2:], [1, 2])  # without the second document
    alone = small(tables=False, encoder_size=0)
    alone.count([remaining])
    rows = model.reader.index.rows(batch, model.longest)[3]
    own = model.ngrams.counts[rows[0]].clone()
    own[1] -= 1
    assert own.tolist() == alone.ngrams.counts[alone.reader.index.rows(remaining, 4)[0, 0]].tolist() == [0, 1, 1]
    changed = replace(batch, labels=np.array([2, 1, 1, 2]))
    relabelled = small(tables=False, encoder_size=0)
    relabelled.count([changed])
    same = (model, relabelled)
    with torch.no_grad():
        for one in same:
            one.ngrams.class_documents.copy_(torch.tensor([1.0, 2.0, 1.0]))  # but for the shares of the classes
    torch.testing.assert_close(scores[:3], relabelled.training_evidence(changed, generator_of(0))[:3])


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_documents_that_are_all_alike_do_not_tell_their_labels_in_training(back_end, several: bool) -> None:
    """Not by the counts without them either, in which the share of their own class is smaller."""
    labels = np.arange(12) % CLASSES
    batch = Batch.from_lists([[[4, 5, 6], [7]]] * 12, labels.tolist())
    if several:
        batch = replace(batch, labels=np.eye(CLASSES, dtype=np.float32)[labels])
    model = small(tables=False, encoder_size=0, several=several)
    model.count([batch])
    said = model.training_evidence(batch, generator_of(0)).view(12, -1, CLASSES)
    torch.testing.assert_close(said, torch.zeros_like(said), atol=2e-3, rtol=0)


def test_dropout_is_of_training_alone() -> None:
    batch = make_batch([[6, 6, 6]] * 4, 0)
    model, _ = trained(batch, 0, dropout=0.5)
    with torch.no_grad():
        assert torch.equal(model(batch).logits, model(batch).logits)
        drawn = [model(batch, generator_of(seed)).logits for seed in (0, 0, 1)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


@given(lengths=ragged, seed=seeds, several=st.booleans())
@settings(max_examples=10)
def test_a_documents_logits_do_not_depend_on_its_batch(back_end, lengths, seed, several):
    batch = make_batch(lengths, seed, several=several)
    model, _ = trained(batch, seed, several=several, **PARTS["all"])
    with torch.no_grad():
        together = model(batch).logits
        alone = torch.cat([model(batch.part(d, d + 1)).logits for d in range(batch.n_documents)])
        order = np.random.default_rng(seed).permutation(batch.n_documents)
        documents = oracle.documents_of(batch)
        shuffled = model(Batch.from_lists([documents[d] for d in order])).logits
    torch.testing.assert_close(alone, together, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(shuffled, together[order], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_many_documents_in_one_native_pass_equal_the_plain_steps(several: bool) -> None:
    """More words than a portion of native/reading.h has, with one thread and with two."""
    rng = np.random.default_rng(0)
    lengths = [rng.integers(1, 30, rng.integers(1, 12)).tolist() for _ in range(60)]
    batch = make_batch([*lengths, [900, 700, 2, 800]], 1, several=several)
    model, _ = trained(batch, 1, several=several, **PARTS["all"])
    with on_kernels(False):
        plain, potentials = model.reader.logits(batch), model.reader.potentials(batch)
    for threads in (1, 2):
        with on_kernels(True), threads_kept():
            cores.set_threads(threads)
            np.testing.assert_allclose(model.reader.logits(batch), plain, atol=1e-5, rtol=1e-5)
            np.testing.assert_allclose(model.reader.potentials(batch), potentials, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("parts", ["words", "all"])
def test_words_beyond_the_vocabulary_are_an_error_and_not_a_crash(back_end, parts: str) -> None:
    batch = make_batch([[6, 4]] * 8, 1)
    model, _ = trained(batch, 1, **PARTS[parts])
    with pytest.raises(IndexError):
        model.reader.logits(Batch.from_lists([[[1, VOCABULARY]]]))


@given(lengths=ragged, seed=seeds, most=st.integers(1, 40), several=st.booleans())
@settings(max_examples=10)
def test_large_batches_are_read_in_portions(back_end, lengths, seed, most, several):
    batch = make_batch(lengths, seed, several=several)
    model, _ = trained(batch, seed, several=several, dropout=0.3, **PARTS["all"])
    parameters = dict(model.named_parameters())

    def gradients() -> dict[str, torch.Tensor]:
        logits = model(batch, generator_of(1)).logits
        found = torch.autograd.grad(logits.square().sum(), list(parameters.values()), allow_unused=True)
        return {name: g.to_dense() for name, g in zip(parameters, found, strict=True) if g is not None}

    with pytest.MonkeyPatch.context() as patch:
        with torch.no_grad():
            whole = model(batch).logits
        whole_gradients = gradients()
        patch.setattr(module, "AT_ONCE", most * model.longest * CLASSES)
        for by_sentence in (False, True):
            parts = module.portions(batch, model.longest * CLASSES, by_sentence=by_sentence)
            assert sum(part.n_sentences for part in parts) == batch.n_sentences
            assert all(part.n_words <= most or part.n_documents == 1 for part in parts)
        with torch.no_grad():
            torch.testing.assert_close(model(batch).logits, whole, atol=1e-5, rtol=1e-5)
        for name, gradient in gradients().items():
            torch.testing.assert_close(gradient, whole_gradients[name], atol=1e-3, rtol=1e-3)


def test_learns() -> None:
    batch = make_batch([[3, 2]] * 9, 1)
    batch.words[batch.word_offsets[:-1]] = 7 + batch.labels
    model = small(1)
    model.count([batch])
    check_learns(model, batch, steps=60, learning_rate=0.1)


# ------------------------------------------------------------------------------------------------ one segmentation


def added(reading: Reading, document: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """The priors of each document and its parts."""
    total = reading.priors.astype(np.float64)
    np.add.at(total, document, parts)
    return total


def check_reading(model: Evidence, counted: oracle.Counted, batch: Batch, *, learned: bool = True) -> Reading:
    reading = model.read(batch)
    with torch.no_grad():
        np.testing.assert_allclose(reading.logits, model(batch).logits, atol=1e-5, rtol=1e-5)
    assert np.array_equal(reading.chosen, reading.logits.argmax(axis=1))
    document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
    ends, _ = phrases_of(reading.z)
    for place, parts in ((document, reading.words), (document[ends], reading.phrases)):
        np.testing.assert_allclose(added(reading, place, parts), reading.logits, atol=1e-4, rtol=0)
    for d, sentences in enumerate(oracle.documents_of(batch)):
        if learned:
            own = reading.words[batch.word_offsets[d] : batch.word_offsets[d + 1]]
            np.testing.assert_allclose(own, oracle.word_shares(model, counted, sentences), atol=2e-4, rtol=1e-4)
            begin, end = batch.document_offsets[[d, d + 1]]
            cuts = [reading.z[a:b].tolist() for a, b in pairwise(batch.sentence_offsets[begin : end + 1])]
            best = oracle.best_cuts(model, counted, sentences, int(reading.chosen[d]))
            assert all(cut in level for cut, level in zip(cuts, best, strict=True))
    return reading


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
@given(lengths=ragged, seed=seeds)
@settings(max_examples=8)
def test_a_reading_adds_up_and_shows_the_best_segmentation_of_the_predicted_class(back_end, several, lengths, seed):
    batch = make_batch(lengths, seed, several=several)
    for parts in ("all", "no encoder"):  # with pauses and without
        model, counted = trained(batch, seed, several=several, **PARTS[parts])
        check_reading(model, counted, unlabelled(batch))


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_a_reading_of_a_long_document_adds_up(several: bool) -> None:
    batch = make_batch([[6, 4]] * 8, 1, several=several)
    model, _ = trained(batch, 1, several=several, **PARTS["all"])
    rng = np.random.default_rng(0)
    long = Batch.from_lists([[rng.integers(0, VOCABULARY, 500).tolist() for _ in range(20)]])
    reading = model.read(long)
    np.testing.assert_allclose(reading.words.sum(axis=0), (reading.logits - reading.priors)[0], atol=1e-4, rtol=0)


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
@pytest.mark.parametrize("name", ["none", "words", "every-3", "random", "punctuation"])
@given(lengths=ragged, seed=seeds)
@settings(max_examples=4)
def test_a_fixed_segmentation_gives_the_sum_over_its_phrases(back_end, name, several, lengths, seed):
    batch = make_batch(lengths, seed, several=several)
    cut = rule(name, WORDS, 0.5)
    model, counted = trained(batch, seed, several=several, longest=2, rule=cut, pauses=WORDS)
    reading = check_reading(model, counted, batch, learned=False)
    assert np.array_equal(reading.z, capped(cut(batch), 2))
    assert phrases_of(reading.z)[1].max() <= 2
    for d, sentences in enumerate(oracle.documents_of(batch)):
        begin, end = batch.document_offsets[[d, d + 1]]
        cuts = [reading.z[a:b].tolist() for a, b in pairwise(batch.sentence_offsets[begin : end + 1])]
        expected = oracle.even_shares(model, counted, sentences, cuts)
        own = reading.words[batch.word_offsets[d] : batch.word_offsets[d + 1]]
        np.testing.assert_allclose(own, expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("z", "longest", "expected"),
    [("0001", 2, "0101"), ("0001", 4, "0001"), ("00001", 2, "01011"), ("00100001", 3, "00100101"), ("1", 1, "1")],
)
def test_phrases_that_are_too_long_are_cut(z: str, longest: int, expected: str) -> None:
    given = np.array([digit == "1" for digit in z])
    assert "".join(str(int(end)) for end in capped(given, longest)) == expected


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
@given(lengths=ragged, seed=seeds)
@settings(max_examples=6)
def test_overlapping_gives_the_sum_over_all_candidates(several, lengths, seed):
    batch = make_batch(lengths, seed, several=several)
    model, counted = trained(batch, seed, several=several, segmentation=OVERLAPPING, pauses=WORDS)
    with torch.no_grad():
        logits = model(batch).logits
    for d, sentences in enumerate(oracle.documents_of(batch)):
        said = oracle.evidence(model, counted, sentences)
        weighed = zip(oracle.lambdas(model, sentences), said, strict=True)
        total = sum(weight * e.sum(axis=(0, 1)) for weight, e in weighed)
        expected = oracle.values(model.bias) + (total if several else total - total.mean())
        torch.testing.assert_close(logits[d].double(), torch.from_numpy(expected), atol=3e-4, rtol=1e-4)
    check_reading(model, counted, batch, learned=False)


def test_overlapping_candidates_are_shared_evenly_by_their_words() -> None:
    batch = Batch.from_lists([[[4, 5, 6], [7]]], [0])
    model, _ = trained(batch, 3, longest=3, segmentation=OVERLAPPING)
    e = model.reader.evidence(batch) * model.reader.lambdas(batch)[0]  # (words, K, classes)
    words = model.read(batch).words
    first, second, third = e[0, 0], e[1, :2], e[2, :3]
    expected = [
        first + second[1] / 2 + third[2] / 3,
        second[0] + second[1] / 2 + third[1] / 2 + third[2] / 3,
        third[0] + third[1] / 2 + third[2] / 3,
        e[3, 0],
    ]
    for own, said in zip(words, expected, strict=True):
        np.testing.assert_allclose(own, said - said.mean(), atol=1e-5, rtol=1e-5)


# ----------------------------------------------------------------------------------------------------- odd documents


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_without_a_known_word_the_label_is_by_prior(several: bool) -> None:
    """Whatever the encoder makes of an unknown word."""
    batch = make_batch([[4, 2], [3], [5]], 3, several=several)
    model, _ = trained(batch, 3, several=several, **PARTS["all"])
    unknown = Batch.from_lists([[[0, 0, 0], [0]], [[0]]])
    reading = model.read(unknown)
    assert np.array_equal(reading.logits, np.tile(reading.bias, (2, 1)))
    assert not reading.words.any()
    mixed = Batch.from_lists([[[0, 0, 0], [0]], [[int(batch.words.max())]]])
    assert np.array_equal(model.read(mixed).logits[0], reading.bias)
    assert not np.array_equal(model.read(mixed).logits[1], reading.bias)


def test_phrases_may_be_longer_than_every_sentence() -> None:
    batch = make_batch([[1, 2], [2], [1]], 5)
    for K in (2, 8):
        model, counted = trained(batch, 5, longest=K)
        expected = [oracle.logits(model, counted, document) for document in oracle.documents_of(batch)]
        with torch.no_grad():
            torch.testing.assert_close(
                model(batch).logits.double(), torch.from_numpy(np.stack(expected)), atol=2e-4, rtol=1e-4
            )
    with pytest.raises(ValidationError, match="less than or equal to 8"):
        trained(batch, 5, longest=9)


def test_one_class_more_than_the_data_show_is_finite() -> None:
    """As `partial_fit` has, when a class is still to come."""
    batch = replace(make_batch([[3, 3]] * 6, 2), labels=np.array([0, 1, 0, 1, 0, 1]))
    model = small()
    model.count([batch])
    logits = model(batch, generator_of(0)).logits
    assert logits.isfinite().all()
    assert (logits.argmax(dim=1) != 2).all()


# ---------------------------------------------------------------------------------------------- users and products


def with_ids(batch: Batch, users: list[int], products: list[int]) -> Batch:
    return replace(batch, users=np.array(users), products=np.array(products))


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_users_and_products_add_to_the_logits_and_are_terms_of_the_reading(several: bool) -> None:
    batch = with_ids(make_batch([[3], [2, 4], [1], [5]], 0, several=several), [0, 1, -1, 1], [2, -1, -1, 0])
    model, counted = trained(batch, 0, several=several, authors=(2, 3))
    reading = model.read(batch)
    scores = {kind: oracle.values(model.ids[kind].table) for kind in ("user", "product")}
    for d, sentences in enumerate(oracle.documents_of(batch)):
        ids = {"user": int(batch.users[d]), "product": int(batch.products[d])}
        terms = {kind: scores[kind][i] if i >= 0 else np.zeros(CLASSES) for kind, i in ids.items()}
        for kind, term in terms.items():
            np.testing.assert_allclose(reading.said_by[kind][d], term, atol=1e-6)
        expected = oracle.logits(model, counted, sentences) + sum(terms.values())
        np.testing.assert_allclose(reading.logits[d], expected, atol=2e-4, rtol=1e-4)
    document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
    ends, _ = phrases_of(reading.z)
    np.testing.assert_allclose(added(reading, document[ends], reading.phrases), reading.logits, atol=1e-4, rtol=0)


def test_users_and_products_begin_without_a_say() -> None:
    batch = make_batch([[3], [2, 4]], 0)
    named = with_ids(batch, [0, 1], [1, 0])
    plain, reading = small(), small(authors=(2, 2))
    for model in (plain, reading):
        model.count([named])
    with torch.no_grad():
        assert torch.equal(plain(batch).logits, reading(named).logits)
    with pytest.raises(DataError, match="user"):
        reading(batch)
    with pytest.raises(DataError, match="product id 2"):
        reading(with_ids(batch, [0, 1], [2, 0]))
    with pytest.raises(ConfigError, match=r"product.*; .*model\.ids=false"):
        small(authors=(2, 0))


# ------------------------------------------------------------------------------------------- saving, size, settings


def test_survives_saving() -> None:
    batch, other = make_batch([[3, 2]] * 8, 0), make_batch([[4]] * 3, 9)
    model, fresh = trained(batch, 0, **PARTS["all"])[0], small(1, **PARTS["all"])
    state = load(save({name: tensor.contiguous() for name, tensor in model.state_dict().items()}))
    for one in (fresh, trained(other, 2, **PARTS["all"])[0]):  # also one that has learned from other documents
        with torch.no_grad():
            one(batch)  # what is kept between calls must not outlive the tensors that it was made of
        one.take_sizes(state)
        one.load_state_dict(state)
        with torch.no_grad():
            for documents in (batch, other):
                assert torch.equal(one(documents).logits, model(documents).logits)
        assert not one.uncounted


def test_loading_the_same_sizes_keeps_the_parameters() -> None:
    """An optimiser holds them when a checkpoint is loaded."""
    batch = make_batch([[3, 2]] * 8, 0)
    model, _ = trained(batch, 0)
    before = dict(model.named_parameters())
    model.take_sizes(model.state_dict())
    assert all(model.get_parameter(name) is parameter for name, parameter in before.items())


def test_other_phrases_of_the_same_number_are_found_after_loading() -> None:
    one, two = Batch.from_lists([[[4]], [[5]]], [0, 1]), Batch.from_lists([[[6]], [[7]]], [0, 1])
    first, second = (trained(batch, 1, encoder_size=0)[0] for batch in (one, two))
    with torch.no_grad():
        for batch in (one, two):
            first(batch)
        first.take_sizes(second.state_dict())
        first.load_state_dict(second.state_dict())
        for batch in (one, two):
            assert torch.equal(first(batch).logits, second(batch).logits)


def test_what_training_changes_shows_at_once() -> None:
    batch = make_batch([[4, 2]] * 6, 4)
    model, _ = trained(batch, 4)
    for name in ("ngrams.table", "scale", "mixing", "encoder.projection", "bias", "length_prior"):
        with torch.no_grad():
            before = model(batch).logits
            model.get_parameter(name).add_(torch.randn(model.get_parameter(name).shape, generator=generator_of(0)))
            assert not torch.equal(model(batch).logits, before), name
    with torch.no_grad():
        before = model(batch).logits
        model.count([replace(batch, labels=np.zeros(6, dtype=np.int64))])
        assert not torch.equal(model(batch).logits, before)


@pytest.mark.parametrize("classes", [2, 20, 1000])
def test_the_file_stays_below_the_bound(classes: int) -> None:
    megabytes = {2: 1.0, 20: 1.0, 1000: 10.0}[classes]
    rng = np.random.default_rng(0)
    vocabulary = 3000
    documents = [[rng.integers(1, vocabulary, 300).tolist()] for _ in range(60)]
    batch = Batch.from_lists(documents + documents, (np.arange(120) % classes).tolist())
    model = Evidence(
        EvidenceConfig(
            longest=4, presence=1.0, encoder_size=16, least_documents=1, sentence_weights=8, megabytes=megabytes
        ),
        table=torch.zeros(vocabulary, 10), classes=classes, generator=generator_of(0), vocabulary=["w"] * vocabulary,
    )  # fmt: skip
    model.count([batch])
    size = len(save(model.state_dict()))
    rows = len(model.ngrams.keys)
    assert 0 < rows < 60 * 300 * 4 - 60 * 6  # the bound was hit
    assert size <= megabytes * 1_000_000


def test_a_bound_without_room_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.megabytes = 0\.01 leaves no room.*;"):
        small(megabytes=0.01)
    config = EvidenceConfig(megabytes=5.0, longest=4, sentence_weights=0, pauses=False)
    with pytest.raises(ConfigError, match=r"model\.megabytes = 5 .* 1000 classes.*; raise it"):
        Evidence(config, table=make_table(), classes=1000, generator=generator_of(0))


def test_no_part_at_all_is_refused() -> None:
    with pytest.raises(ValidationError, match="switch one of them on"):
        small(counts=False, tables=False, encoder_size=0)


def test_vectors_are_kept_only_where_they_are_read() -> None:
    assert small(encoder_size=0).vectors.shape == (0, SIZE)
    assert small(encoder_size=0, sentence_weights=2).vectors.shape == (VOCABULARY, SIZE)
