import pytest
import sentencex
from hypothesis import example, given

from emhrnn.text.words import split_sentences
from tests.text.strategies import texts


def shown(text: str) -> list[str]:
    return [piece.strip() for piece in split_sentences(text) if piece.strip()]


@given(texts)
@example("“A.”\x85\x85B. C.\xa0D")
@example("Hello.\n\n" * 3000)
def test_no_character_is_lost_or_invented(text: str) -> None:
    joined = "".join(split_sentences(text))
    assert len(joined) == len(text)
    for was, now in zip(text, joined, strict=True):
        assert now in (was, " ", "\n", "\N{REPLACEMENT CHARACTER}")
        if now != was and now.isspace():
            assert was.isspace() or was in "<bBrR/>"


@pytest.mark.parametrize("breaks", ["\n\n", "\r\n\r\n", "<br /><br />", "<BR><br/>", "<br>\n", "<br /> <br /><br />"])
def test_an_empty_line_ends_a_sentence(breaks: str) -> None:
    assert shown(f"no full stop{breaks}next one") == ["no full stop", "next one"]


@pytest.mark.parametrize("line_break", ["\n", "<br />", "<br>", "\r\n"])
def test_one_line_break_does_not(line_break: str) -> None:
    assert len(shown(f"a hard-wrapped{line_break}sentence")) == 1


def test_abbreviations_and_emoji() -> None:
    assert shown("😀 Mr. Smith came. He saw 3.5 films! 👨‍👩‍👧 Why?") == [
        "😀 Mr. Smith came.",
        "He saw 3.5 films!",
        "👨‍👩‍👧 Why?",
    ]


def test_paragraphs_of_a_long_text_are_all_found() -> None:
    """sentencex loses the blank line at each of its blocks of 10 kB."""
    assert shown("Hello there.\n\n" * 20_000) == ["Hello there."] * 20_000


@pytest.mark.parametrize("unit", ["word ", "a. ", '"a b. ', "( a. ", "<br>", "<br ", "\0", ".", "http:// ", "“A.” "])
def test_a_text_of_a_megabyte(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert sum(map(len, split_sentences(text))) == len(text)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\0", "\ud800"])
def test_texts_of_almost_nothing(text: str) -> None:
    assert sum(map(len, split_sentences(text))) == len(text)


def test_a_text_that_the_splitter_cannot_read_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    panic = type("PanicException", (BaseException,), {})

    def fail(language: str, text: str) -> list[str]:
        raise panic("not a char boundary")

    monkeypatch.setattr(sentencex, "segment", fail)
    assert split_sentences("One. Two.") == ["One. Two."]


def test_other_failures_of_the_splitter_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(language: str, text: str) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(sentencex, "segment", interrupt)
    with pytest.raises(KeyboardInterrupt):
        split_sentences("One. Two.")


def test_a_splitter_that_loses_text_cannot_make_us_lose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentencex, "segment", lambda language, text: ["One. ", "not in the text", "Two."])
    assert "".join(split_sentences("One. Two. Three.")) == "One. Two. Three."
