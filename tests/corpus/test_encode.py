"""Texts to a batch, against the slow reader and plain lists."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus import Batch, TextEncoder, TextSettings
from emhrnn.corpus.encode import checked_texts, has_words
from emhrnn.corpus.record import clean_text
from emhrnn.errors import DataError
from emhrnn.text import TextLimits, Vocabulary, read_document
from tests.oracles.text import count_words
from tests.text.strategies import FRAGMENTS, hard_texts, texts

VOCABULARY = Vocabulary.from_counts(count_words(FRAGMENTS))
ENCODER = TextEncoder(VOCABULARY, users=["ann", "bob"], products=["soup"])

any_text = st.one_of(texts, hard_texts)
cap = st.one_of(st.none(), st.integers(1, 4))


def documents_of(batch: Batch) -> list[list[list[int]]]:
    sentences = [batch.words[a:b].tolist() for a, b in pairwise(batch.sentence_offsets.tolist())]
    return [sentences[a:b] for a, b in pairwise(batch.document_offsets.tolist())]


def slowly(text: str, settings: TextSettings) -> list[list[int]]:
    """Word ids by the slow reader, with the caps applied to its lists."""
    document = read_document(clean_text(text)[0], lowercase=settings.lowercase)
    kept = document.sentences[: settings.limits.max_sentences]
    return [VOCABULARY.encode(words[: settings.limits.max_words_per_sentence]).tolist() for words in kept]


@settings(max_examples=60, deadline=None)
@given(st.lists(any_text.map(lambda text: text + "!"), min_size=1, max_size=4), cap, cap, st.booleans())
def test_every_route_reads_the_same_words(some: list[str], words: int | None, sentences: int | None, low: bool) -> None:
    caps = TextSettings(lowercase=low, limits=TextLimits(max_words_per_sentence=words, max_sentences=sentences))
    encoder = TextEncoder(VOCABULARY, caps)
    expected = [slowly(text, caps) for text in some]
    assert documents_of(encoder.encode(some)) == expected
    located, batch = encoder.locate(some)
    assert documents_of(batch) == expected
    assert [document.text for document in located] == [clean_text(text)[0] for text in some]
    usable = encoder.encode_usable(some)
    assert usable is not None
    assert documents_of(usable) == expected


@given(st.lists(st.one_of(any_text, st.sampled_from(["", " ", "<br>", "\0", "\n<br /> \xa0"])), max_size=5))
def test_texts_without_words(some: list[str]) -> None:
    full = [number for number, text in enumerate(some) if slowly(text, TextSettings())]
    assert [number for number, text in enumerate(some) if has_words(text)] == full
    usable = ENCODER.encode_usable(some)
    assert ([] if usable is None else usable.rows.tolist()) == full
    if len(full) < len(some):
        first = next(number for number in range(len(some)) if number not in full)
        for read in (ENCODER.encode, ENCODER.locate):
            with pytest.raises(DataError, match=f"text {first + 1} has no words"):
                read(some)


def test_names_become_ids() -> None:
    some = ["one", "", "two", "three"]
    usable = ENCODER.encode_usable(some, users=[" bob ", "ann", None, "eve"], products=["soup", "soup", "soup", None])
    assert usable is not None
    assert usable.users is not None
    assert usable.products is not None
    assert (usable.users.tolist(), usable.products.tolist()) == ([1, -1, -1], [0, 0, -1])
    unnamed = ENCODER.encode(["one", "two"])
    assert unnamed.users is not None
    assert unnamed.users.tolist() == [-1, -1]
    assert TextEncoder(VOCABULARY).encode(["one"], users=["ann"]).users is None  # a model that knows no names


def test_sentences_that_are_given_are_kept() -> None:
    ids = VOCABULARY.encode(["plain", ".", "world"]).tolist()
    batch = ENCODER.encode([("Plain. world", "plain"), "Plain. World."])
    assert documents_of(batch)[0] == [ids, ids[:1]]


def test_a_text_of_a_megabyte_is_read_in_one_go() -> None:
    text = "plain world " * 90_000
    assert ENCODER.encode([text]).lengths.tolist() == [180_000]
    assert ENCODER.locate([text])[1].n_words == 180_000


def test_one_name_for_each_text() -> None:
    for names in (["ann"], "ab"):
        with pytest.raises(DataError, match=r"2 texts and .* for users"):
            ENCODER.encode(["a", "b"], users=names)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("one", "give a list of texts"),
        ({"text": ["a"]}, "table"),
        ({"a", "b"}, "set"),
        (5, "int"),
        (["a", None], "text 2 is a NoneType"),
        (np.array("a"), "ndarray"),
    ],
)
def test_what_is_no_sequence_of_texts(given: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        checked_texts(given)
