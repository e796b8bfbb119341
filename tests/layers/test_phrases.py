"""Keys, rows and repeats of candidate phrases: the native kernels and the NumPy twin against dictionaries of words."""

from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from emhrnn.layers.phrases import (
    MOST_WORDS,
    NONE,
    PhraseIndex,
    distinct_words,
    first_in_document,
    phrase_keys,
    presence_weights,
    repeats,
)
from tests.back_ends import check_threads_change_no_bit, on_kernels
from tests.layers.candidates import K_OF_TESTS, few_words, ragged
from tests.layers.shapes import seeds
from tests.oracles import phrase_evidence as oracle


def phrases_of(batch: Batch, K: int) -> list[list[oracle.Phrase | None]]:
    return oracle.candidates(batch.words.tolist(), batch.sentence_offsets.tolist(), K)


def keys_by_phrase(batch: Batch, K: int) -> dict[oracle.Phrase, int]:
    pairs = zip(chain(*phrases_of(batch, K)), phrase_keys(batch, K).flatten().tolist(), strict=True)
    return {phrase: key for phrase, key in pairs if phrase is not None}


def index_of(keys: dict[oracle.Phrase, int], seen: list[oracle.Phrase]) -> PhraseIndex:
    return PhraseIndex(np.array(sorted(keys[phrase] for phrase in seen), dtype=np.int64))


@given(ragged, K_OF_TESTS, seeds)
@example([[1], [1, 2]], 4, 0)
@example([[3] * 300], 2, 1)  # more than one task
@settings(max_examples=40)
def test_a_phrase_has_one_key_and_a_key_has_one_phrase(back_end, lengths, K, seed):
    batch = few_words(lengths, seed)
    keys = phrase_keys(batch, K)
    assert keys.shape == (batch.n_words, K)
    phrase_of: dict[int, oracle.Phrase] = {}
    for phrase, key in zip(chain(*phrases_of(batch, K)), keys.flatten().tolist(), strict=True):
        assert (key == NONE) == (phrase is None)
        if phrase is not None:
            assert key >= 0
            assert key % MOST_WORDS == len(phrase) - 1
            assert phrase_of.setdefault(key, phrase) == phrase
    assert len(set(phrase_of.values())) == len(phrase_of)


@given(ragged, K_OF_TESTS, seeds)
@settings(max_examples=40)
def test_rows_are_those_of_phrases_whose_ends_are_all_seen(back_end, lengths, K, seed):
    """Also where the seen phrases lack ends of others: no row then, though the key is there."""
    batch = few_words(lengths, seed)
    keys, rng = keys_by_phrase(batch, K), np.random.default_rng(seed)
    seen = [phrase for phrase in sorted(keys) if rng.random() < 0.6]
    index = index_of(keys, seen)
    for word, rows in zip(phrases_of(batch, K), index.rows(batch, K).tolist(), strict=True):
        for phrase, row in zip(word, rows, strict=True):
            assert (row != NONE) == oracle.found(phrase, seen)
            assert row == NONE or int(index.keys[row]) == keys[phrase]


def test_a_phrase_is_not_found_without_the_phrases_that_it_ends_with(back_end):
    batch = Batch.from_lists([[[1, 2, 3]]])
    keys = keys_by_phrase(batch, 3)
    assert (index_of(keys, list(keys)).rows(batch, 3) >= 0).tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    without = [phrase for phrase in keys if phrase != (2, 3)]
    assert (index_of(keys, without).rows(batch, 3) >= 0).tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 0]]
    assert (index_of(keys, [(2,), (1, 2)]).rows(batch, 3) >= 0).tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 0]]


def test_unknown_words_and_short_sentences_have_no_phrases(back_end):
    batch = Batch.from_lists([[[1, 0, 2, 3]], [[4], [0]]])
    keys = phrase_keys(batch, 3)
    assert (keys != NONE).tolist() == [[1, 0, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [0, 0, 0]]
    rows = PhraseIndex(np.unique(keys[keys != NONE])).rows(batch, 3)
    assert np.array_equal(rows != NONE, keys != NONE)
    assert repeats(batch, keys)[keys == NONE].tolist() == [0] * int((keys == NONE).sum())


@pytest.mark.parametrize("K", [1, 4])
def test_an_empty_table_finds_nothing(back_end, K):
    batch = few_words([[5, 1], [2]], 0)
    index = PhraseIndex(np.zeros(0, dtype=np.int64))
    assert np.array_equal(index.rows(batch, K), np.full((batch.n_words, K), NONE))


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_tables_of_many_and_of_few_keys(back_end, size):
    """The largest and the smallest key, too, wherever their first bits put them."""
    batch = Batch.from_lists([[list(range(1, size + 1))]])
    keys = phrase_keys(batch, 1)
    ordered = np.sort(keys[:, 0])
    for table in (ordered, np.concatenate([[0], ordered, [2**63 - 1]])):
        index = PhraseIndex(table)
        assert np.array_equal(table[index.rows(batch, 1)[:, 0]], keys[:, 0])


@given(ragged, K_OF_TESTS, seeds, st.booleans())
@example([[1]] * 40, 3, 5, True)  # more than one task
@settings(max_examples=40)
def test_repeats_and_first_equal_counting(back_end, lengths, K, seed, of_rows):
    batch = few_words(lengths, seed)
    values = phrase_keys(batch, K)
    if of_rows:
        values = PhraseIndex(np.unique(values[values != NONE])[::2]).rows(batch, K)
    times, first = oracle.repeats(values.tolist(), batch.word_offsets.tolist(), none=NONE)
    assert repeats(batch, values).tolist() == times
    assert first_in_document(batch, values).tolist() == first
    assert repeats(batch, values).dtype == np.int32


def test_repeats_of_words(back_end):
    batch = Batch.from_lists([[[1, 2, 1], [1]], [[2, 2]], [[0, 1]]])
    keys = phrase_keys(batch, 2)
    assert repeats(batch, keys).tolist() == [[3, 0], [1, 1], [3, 1], [3, 0], [2, 0], [2, 1], [0, 0], [1, 0]]
    first = first_in_document(batch, keys).astype(int)
    assert first.tolist() == [[1, 0], [1, 1], [0, 1], [0, 0], [1, 0], [0, 1], [0, 0], [1, 0]]


@given(ragged, K_OF_TESTS, seeds, st.sampled_from([0.0, 0.5, 1.0]))
@example([[1]] * 40, 3, 5, 0.5)  # more than one task
@example([[300]], 1, 2, 0.5)  # words that are there more than a hundred times
@settings(max_examples=40)
def test_presence_weights_are_powers_of_repeats(back_end, lengths, K, seed, presence):
    batch = few_words(lengths, seed)
    keys = phrase_keys(batch, K)
    rows = PhraseIndex(np.unique(keys[keys != NONE])[::2]).rows(batch, K)
    times, _ = oracle.repeats(rows.tolist(), batch.word_offsets.tolist(), none=NONE)
    expected = [[n**-presence if n else 0.0 for n in word] for word in times]
    np.testing.assert_allclose(presence_weights(batch, rows, presence), expected, rtol=1e-6)


@given(st.lists(st.integers(0, 9), max_size=60))
@example(list(range(500)) * 2)
def test_distinct_words(back_end, words):
    distinct, places = distinct_words(np.array(words, dtype=np.int64))
    assert sorted(distinct.tolist()) == sorted(set(words))
    assert distinct[places].tolist() == words


def test_values_need_not_be_contiguous(back_end):
    batch = few_words([[5, 2], [3]], 1)
    keys = phrase_keys(batch, 3)
    turned = np.asfortranarray(keys)
    assert np.array_equal(repeats(batch, turned), repeats(batch, keys))
    assert np.array_equal(first_in_document(batch, turned), first_in_document(batch, keys))


def everything(batch: Batch, K: int) -> tuple[np.ndarray, ...]:
    keys = phrase_keys(batch, K)
    rows = PhraseIndex(np.unique(keys[keys != NONE])[::2]).rows(batch, K)
    return keys, rows, repeats(batch, keys), repeats(batch, rows), first_in_document(batch, keys)


@given(ragged, K_OF_TESTS, seeds)
@settings(max_examples=40)
def test_both_back_ends_give_the_same(lengths, K, seed):
    """Keys too: they are in model files, which must not depend on a compiler."""
    batch, results = few_words(lengths, seed, words=2**40), []
    for native in (True, False):
        with on_kernels(native):
            results.append(everything(batch, K))
    assert all(np.array_equal(a, b) for a, b in zip(*results, strict=True))


def test_keys_do_not_change_between_versions(back_end):
    """A model file of today is to be read tomorrow."""
    keys = phrase_keys(Batch.from_lists([[[7, 123456]]]), 2)
    assert keys.tolist() == [[2055531289090137432, NONE], [7093358530772144312, 8445111369486052521]]


def test_the_number_of_threads_does_not_change_anything():
    batch = few_words([[3, 1, 4]] * 400, 0)
    check_threads_change_no_bit(lambda: everything(batch, 4))


def test_a_document_does_not_depend_on_the_others(back_end):
    batch = few_words([[4, 2], [7], [1, 1, 5]], 3)
    keys, times = phrase_keys(batch, 3), repeats(batch, phrase_keys(batch, 3))
    for d, (begin, end) in enumerate(pairwise(batch.word_offsets)):
        part = batch.part(d, d + 1)
        assert np.array_equal(phrase_keys(part, 3), keys[begin:end])
        assert np.array_equal(repeats(part, phrase_keys(part, 3)), times[begin:end])


def test_wrong_arguments_are_errors_and_not_crashes(back_end):
    batch = few_words([[4, 2]], 0)
    index = PhraseIndex(np.array([3, 5]))
    for longest in (0, -1, MOST_WORDS + 1):
        for function in (phrase_keys, index.rows):
            with pytest.raises(ValueError, match="1 to 8"):
                function(batch, longest)
    for words in (5, 7):
        for count in (repeats, first_in_document):
            with pytest.raises(IndexError, match=f"{words} words for a batch of 6"):
                count(batch, np.zeros((words, 2), dtype=np.int64))
        with pytest.raises(IndexError, match=f"{words} words for a batch of 6"):
            presence_weights(batch, np.zeros((words, 2), dtype=np.int64), 0.5)
    for wrong in ([NONE, 4], [4, 3], [4, 4]):
        with pytest.raises(ValueError, match="sorted"):
            PhraseIndex(np.array(wrong)).rows(batch, 2)
