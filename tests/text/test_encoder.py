import copy
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from emhrnn.errors import ConfigError
from emhrnn.text import (
    Encoded,
    LocatedTexts,
    TextLimits,
    TextSettings,
    Vocabulary,
    WordEncoder,
    read_document,
    tokenise,
)
from emhrnn.text import encoder as encoder_module
from tests.oracles import text as oracle
from tests.oracles.text import count_words, uncovered
from tests.text.strategies import FRAGMENTS, hard_texts, texts

VOCABULARY = Vocabulary.from_counts(count_words(FRAGMENTS))
ENCODER = WordEncoder(VOCABULARY)


@given(texts)
def test_ids_are_those_of_the_document(text: str) -> None:
    encoded = ENCODER.encode([text])
    ids, offsets = oracle.encode(VOCABULARY, text)
    assert encoded.words.tolist() == ids
    assert encoded.sentence_offsets.tolist() == offsets
    assert encoded.document_offsets.tolist() == [0, len(offsets) - 1]


@given(st.lists(texts, max_size=5))
def test_many_are_one_after_the_other(some: list[str]) -> None:
    together = ENCODER.encode(some)
    assert len(together) == len(some)
    for d, text in enumerate(some):
        alone = ENCODER.encode([text])
        first, last = together.document_offsets[d : d + 2]
        offsets = together.sentence_offsets[first : last + 1]
        assert np.array_equal(offsets - offsets[0], alone.sentence_offsets)
        assert np.array_equal(together.words[offsets[0] : offsets[-1]], alone.words)


@given(st.lists(st.one_of(texts, hard_texts), max_size=4), st.booleans(), st.booleans())
@example(["a\u0301b😀 שלום\u202e(x)...\r\n\r\nİ'm <br />don't\ud800"], True, True)
def test_words_stand_where_the_document_has_them(some: list[str], native: bool, lowercase: bool) -> None:
    located, encoded = WordEncoder(VOCABULARY, TextSettings(lowercase=lowercase), native=native).locate(some)
    assert [document.text for document in located] == some
    documents = [read_document(text, lowercase=lowercase) for text in some]
    assert encoded.words.tolist() == [i for expected in documents for i in VOCABULARY.encode(expected.words).tolist()]
    for document, expected in zip(located, documents, strict=True):
        for name in ("starts", "ends", "sentence_offsets"):
            assert getattr(document, name).tolist() == getattr(expected, name).tolist()


def test_spans_know_words_that_were_learned_without_them() -> None:
    encoder = WordEncoder(VOCABULARY)
    encoder.encode(["(10/10)...éd"])
    ((document,), _) = encoder.locate(["é (10/10)...éd don't"])
    spans = zip(document.starts, document.ends, strict=True)
    assert [document.text[start:end] for start, end in spans] == ["é", "(", "10/10", ")", "...", "éd", "do", "n't"]


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    some = ["One two. Three.", "", "Four! Fivé? Six.", "Seven"] * 5
    together, (placed, _) = ENCODER.encode(some), ENCODER.locate(some)
    monkeypatch.setattr(encoder_module, "CHUNK_SENTENCES", 4)
    in_chunks = ENCODER.encode(some)
    for field in fields(Encoded):
        assert np.array_equal(getattr(together, field.name), getattr(in_chunks, field.name))
    for one, other in zip(placed, ENCODER.locate(some)[0], strict=True):
        assert np.array_equal(one.starts, other.starts)
        assert np.array_equal(one.ends, other.ends)


@given(
    st.lists(texts, max_size=4),
    st.one_of(st.none(), st.integers(1, 5)),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_limits_are_those_of_lists(some: list[str], max_words: int | None, max_sentences: int | None) -> None:
    limits = TextLimits(max_words_per_sentence=max_words, max_sentences=max_sentences)
    encoded = WordEncoder(VOCABULARY, TextSettings(limits=limits), native=False).encode(some)
    offsets, words, cut = encoded.sentence_offsets.tolist(), encoded.words.tolist(), []
    given_documents = [
        [words[offsets[s] : offsets[s + 1]] for s in range(first, last)]
        for first, last in pairwise(encoded.document_offsets.tolist())
    ]
    expected = []
    for text in some:
        ids, ends = oracle.encode(VOCABULARY, text)
        sentences = [ids[start:stop] for start, stop in pairwise(ends)]
        expected.append([sentence[:max_words] for sentence in sentences[:max_sentences]])
        cut.append(expected[-1] != sentences)
    assert given_documents == expected
    assert encoded.cut.tolist() == cut


@given(st.lists(texts, max_size=4), st.one_of(st.none(), st.integers(1, 4)), st.one_of(st.none(), st.integers(1, 3)))
def test_limits_are_the_same_with_spans(some: list[str], max_words: int | None, max_sentences: int | None) -> None:
    settings = TextSettings(limits=TextLimits(max_words_per_sentence=max_words, max_sentences=max_sentences))
    encoder = WordEncoder(VOCABULARY, settings)
    located, encoded = encoder.locate(some)
    assert encoded.words.tolist() == encoder.encode(some).words.tolist()
    assert encoded.lengths.tolist() == [len(document) for document in located]
    written = [
        document.text[start:end]
        for document in located
        for start, end in zip(document.starts, document.ends, strict=True)
    ]
    assert VOCABULARY.encode([word for token in written for word in tokenise(token)]).tolist() == encoded.words.tolist()


def test_documents_are_taken_out_as_if_they_were_alone() -> None:
    some = ["Good. Bad!", "", "don't", "So. Very. Good."]
    located, _ = ENCODER.locate(some)
    parts = [located[d : d + 1] for d in range(4)], [ENCODER.locate([text])[0] for text in some]
    for one, alone in zip(*parts, strict=True):
        for field in fields(LocatedTexts):
            assert list(getattr(one, field.name)) == list(getattr(alone, field.name))
    assert [document.text for document in located[1:3]] == some[1:3]
    assert (len(located[4:]), located[-1].text) == (0, some[-1])
    with pytest.raises(IndexError, match="in order"):
        located[::2]


def test_given_sentences_are_joined_with_a_blank() -> None:
    vocabulary = Vocabulary.from_words(["good", "bad", "."])
    ((document,), _) = WordEncoder(vocabulary).locate([("Good bad", "bad.", "good")])
    assert document.text == "Good bad bad. good"
    spans = zip(document.starts, document.ends, strict=True)
    assert [document.text[start:end] for start, end in spans] == ["Good", "bad", "bad", ".", "good"]
    assert document.sentence_offsets.tolist() == [0, 2, 4, 5]


def test_case_can_be_kept() -> None:
    vocabulary = Vocabulary.from_words(["Good", "good"])
    assert WordEncoder(vocabulary, TextSettings(lowercase=False)).encode(["Good good GOOD"]).words.tolist() == [1, 2, 0]
    assert WordEncoder(vocabulary).encode(["Good good GOOD"]).words.tolist() == [2, 2, 2]


def test_known_sentences() -> None:
    encoded = WordEncoder(Vocabulary.from_words(["a", "b", "."])).encode([("a. b", "  ", "b ."), ("", "a"), ()])
    assert encoded.words.tolist() == [1, 3, 2, 2, 3, 1]
    assert encoded.sentence_offsets.tolist() == [0, 3, 5, 6]
    assert encoded.document_offsets.tolist() == [0, 2, 3, 3]


def test_a_blank_text_has_no_sentence() -> None:
    encoded = ENCODER.encode(["", "Hello", " <br />"])
    assert encoded.document_offsets.tolist() == [0, 0, 1, 1]
    assert ENCODER.encode([]).document_offsets.tolist() == [0]
    assert [len(document) for document in ENCODER.locate(["", "Hello", " <br />"])[0]] == [0, 1, 0]
    assert len(ENCODER.locate([])[0]) == 0


def test_the_ids_can_be_written_to() -> None:
    ENCODER.encode(["Hello world"]).words[0] = 0


def test_nothing_is_cut_by_default() -> None:
    encoded = ENCODER.encode(["word " * 5_000, "Hello there. " * 50_000])
    assert np.diff(encoded.sentence_offsets).tolist() == [5_000] + [3] * 50_000
    assert not encoded.cut.any()


def test_limits_cut_and_tell() -> None:
    some = ["One two three. Four.", "One two. Three.", "One. Two. Three.", "One."]
    encoder = WordEncoder(VOCABULARY, TextSettings(limits=TextLimits(max_words_per_sentence=3, max_sentences=2)))
    encoded = encoder.encode(some)
    assert encoded.cut.tolist() == [True, False, True, False]
    assert np.diff(encoded.document_offsets).tolist() == [2, 2, 2, 1]
    assert np.diff(encoded.sentence_offsets).tolist() == [3, 2, 3, 2, 2, 2, 2]


def test_limits_must_be_positive() -> None:
    with pytest.raises(ConfigError, match=r"max_sentences is 0; give a number of 1 or more, or leave it out"):
        TextLimits(max_sentences=0)


def test_an_encoder_can_be_sent_to_another_process() -> None:
    text = "Hello world don't 10/10"
    twin = copy.deepcopy(ENCODER)  # by the same protocol that workers use
    assert twin.encode([text]).words.tolist() == ENCODER.encode([text]).words.tolist()


@given(texts)
@example("İ<br />İSTANBUL'da\x00 don’t")
@example("<br <br />>")
def test_words_and_gaps_are_the_text(text: str) -> None:
    document = read_document(text)
    starts, ends = document.starts, document.ends
    assert document.text == text
    assert (starts < ends).all()
    assert (ends[:-1] <= starts[1:]).all()
    assert not uncovered(text, starts, ends).strip()
    gaps = [text[end:start] for end, start in zip([0, *ends], [*starts, len(text)], strict=True)]
    spans = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    assert gaps[0] + "".join(span + gap for span, gap in zip(spans, gaps[1:], strict=True)) == text


@given(texts)
def test_each_word_is_the_normal_form_of_its_span(text: str) -> None:
    document = read_document(text)
    for word, start, end in zip(document.words, document.starts, document.ends, strict=True):
        assert tokenise(text[start:end]) == [word]


@given(texts)
def test_sentences_share_out_the_words(text: str) -> None:
    document = read_document(text)
    assert (np.diff(document.sentence_offsets) > 0).all()
    assert [word for sentence in document.sentences for word in sentence] == document.words
    assert len(document.sentence_spans) == document.n_sentences == len(document.sentences)


def test_spans_point_into_the_original() -> None:
    text = "İt's 𝒢ood.<br /><br />DON’T go!"
    document = read_document(text)
    assert document.words == ["i̇t", "'s", "𝒢ood", ".", "do", "n't", "go", "!"]
    assert [text[a:b] for a, b in document.sentence_spans] == ["İt's 𝒢ood.", "DON’T go!"]
    assert [text[a:b] for a, b in zip(document.starts, document.ends, strict=True)][4:6] == ["DO", "N’T"]


def test_a_blank_text_has_no_words() -> None:
    for text in ("", " \n\n\t", "<br /><br />", "\u3000"):
        document = read_document(text)
        assert len(document) == 0
        assert document.n_sentences == 0
        assert document.sentence_spans == []


def test_long_documents_and_sentences() -> None:
    assert len(read_document("word " * 100_000)) == 100_000
    assert read_document("word " * 5_000).n_sentences == 1
    assert read_document("This is it. " * 25_000).n_sentences == 25_000


def test_nul_bytes_and_right_to_left_text_are_words() -> None:
    assert read_document("a\0b שלום").words == ["a", "\0", "b", "שלום"]
