import numpy as np
from hypothesis import example, given

from emhrnn.text import read_document, tokenise
from tests.oracles.text import uncovered
from tests.text.strategies import texts


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
