"""Which phrases are kept and how they are counted, against dictionaries of words."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.models import seen_phrases
from emhrnn.models.seen_phrases import SeenPhrases
from tests.models.examples import CLASSES, seeds
from tests.models.test_evidence import counted_of, make_batch, ragged
from tests.oracles import evidence as oracle
from tests.oracles.phrase_evidence import Phrase


def make(*, longest: int = 4, least: int = 1, most: int = 10**9, several: bool = False) -> SeenPhrases:
    return SeenPhrases(CLASSES, longest=longest, least=least, most=most, smoothing=1.0, several=several)


def key_of(phrase: Phrase, K: int) -> int:
    return int(seen_phrases.phrase_keys(Batch.from_lists([[list(phrase)]]), K)[-1, len(phrase) - 1])


def check_counts(seen: SeenPhrases, expected: oracle.Counted) -> None:
    keys = {key_of(phrase, seen.longest): phrase for phrase in expected.by_class}
    assert seen.keys.tolist() == sorted(keys)
    for row, key in enumerate(seen.keys.tolist()):
        assert seen.counts[row].tolist() == pytest.approx(expected.by_class[keys[key]].tolist())
        assert float(seen.documents[row]) == pytest.approx(expected.documents[keys[key]])
    assert seen.class_documents.tolist() == pytest.approx(expected.class_documents.tolist())
    assert float(seen.total) == pytest.approx(expected.total)
    assert seen.table.shape == seen.counts.shape


@given(ragged, seeds, st.integers(1, 4), st.integers(1, 3), st.integers(1, 30), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_counts_equal_those_of_dictionaries(lengths, seed, K, least, most, several, weighted):
    batch = make_batch(lengths, seed, several=several, weighted=weighted)
    expected = counted_of(batch, K=K, least=least, most=most)
    seen = make(longest=K, least=least, most=most, several=several)
    if not expected.by_class:
        with pytest.raises(DataError):
            seen.add([batch])
        return
    documents = [batch.part(d, d + 1) for d in range(batch.n_documents)]
    seen.add(documents)
    check_counts(seen, expected)
    assert not seen.empty


@given(ragged, seeds, st.booleans())
@settings(max_examples=10)
def test_later_documents_count_for_the_phrases_that_are_there(lengths, seed, several):
    batch = make_batch(lengths, seed, several=several)
    half = (batch.n_documents + 1) // 2
    seen, first = make(several=several), batch.part(0, half)
    if not first.words.any():
        return
    seen.add([first])
    keys = seen.keys.clone()
    seen.add([batch.part(half, batch.n_documents)])
    everything = counted_of(batch)
    chosen = counted_of(first).by_class
    everything.by_class = {phrase: c for phrase, c in everything.by_class.items() if phrase in chosen}
    assert torch.equal(seen.keys, keys)
    check_counts(seen, everything)


def test_a_document_of_weight_0_is_as_if_it_were_not_there() -> None:
    batch = Batch.from_lists([[[4, 5]], [[4, 5]], [[6, 7]], [[6, 7]]], [0, 1, 2, 2])
    weighted = replace(batch, weights=np.array([1, 1, 0, 0], dtype=np.float32))
    one, two = make(least=2), make(least=2)
    one.add([weighted])
    two.add([batch.part(0, 2)])
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, two.state_dict()[name]), name


@pytest.mark.parametrize("held", [1, 7, 20])
def test_counting_in_portions_keeps_what_came_before(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as no phrase is forgotten, which only those that were seen once are."""
    batch = make_batch([[6, 6]] * 6, 1)
    batch.words[:] = np.arange(batch.n_words) % 3 + 1  # the same phrases everywhere
    expected = counted_of(batch, least=2)
    monkeypatch.setattr(seen_phrases, "HELD", held)
    seen = make(least=2)
    seen.add([batch.part(d, d + 2) for d in range(0, 6, 2)])
    check_counts(seen, expected)


def test_more_phrases_than_fit_that_are_all_in_equally_many_documents() -> None:
    batch = Batch.from_lists([[[4, 5, 6, 7]]] * 3, [0, 1, 2])
    with pytest.raises(DataError, match=r"3 documents.*; raise model\.megabytes"):
        make(most=5).add([batch])
    make(most=10).add([batch])  # 4 + 3 + 2 + 1


def test_documents_without_phrases() -> None:
    with pytest.raises(DataError, match=r"vocabulary.*; .*data\.min_count"):
        make().add([Batch.from_lists([[[0, 0]], [[0]]], [0, 1])])
    with pytest.raises(DataError, match=r"2 training documents.*; .*model\.least_documents"):
        make(least=2).add([Batch.from_lists([[[4]], [[5]]], [0, 1])])
    with pytest.raises(DataError, match="labels"):
        make().add([Batch.from_lists([[[4]], [[4]]])])


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_many_classes(several: bool) -> None:
    """1,000 classes and 20,000 words: a number for each class at every candidate would take 240 MB."""
    rng = np.random.default_rng(0)
    batch = Batch.from_lists(rng.integers(1, 20, (1000, 1, 20)).tolist(), list(range(1000)))
    if several:  # all documents have the last class, too
        batch = replace(batch, labels=np.maximum(np.eye(1000), np.arange(1000) == 999).astype(np.float32))
    seen = SeenPhrases(1000, longest=3, least=200, most=10**6, smoothing=1.0, several=several)
    seen.add([batch])
    assert len(seen.keys) >= 19
    assert seen.counts[:, :-1].max() == 1  # the document of that class
    assert torch.equal(seen.counts[:, -1] if several else seen.counts.sum(dim=1), seen.documents)
