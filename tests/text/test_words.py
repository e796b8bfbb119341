"""Sentences and words: no character is lost, whatever the text holds."""

import re

import pytest
import sentencex
from hypothesis import example, given
from hypothesis import strategies as st

from emhrnn.text.words import normalise, split_sentences, token_pattern, token_spans, tokenise
from tests.text.strategies import anything, texts


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't can't won't isn't", "do n't ca n't wo n't is n't"),
        ("it's we'll I'm they've you're he'd", "it 's we 'll i 'm they 've you 're he 'd"),
        ("It’s DON’T", "it 's do n't"),
        ("do n't it 's", "do n't it 's"),
        ("shouldn't've", "should n't 've"),
        ("o'clock O'Brien rock'n'roll y'all", "o'clock o'brien rock'n'roll y'all"),
        ("girls' 'quoted' the '90s 'em", "girls ' ' quoted ' the '90s 'em"),
        ("3.14 1,000 10/10 9:30pm 1990s 90's", "3.14 1,000 10/10 9:30 pm 1990s 90 's"),
        ("$5.00, 50%. 3. -5", "$ 5.00 , 50 % . 3 . - 5"),
        ("well-known over-the-top foo--bar", "well-known over-the-top foo -- bar"),
        ("U.S. e.g. i.e., J.R.R. Mr. etc.", "u.s. e.g. i.e. , j.r.r. mr. etc."),
        ("AT&T salt&pepper", "at&t salt & pepper"),
        ("wait... no.... etc... a.b", "wait ... no ... etc ... a . b"),
        ("so good!!!!! what?!?! hm?? yes!", "so good !!! what ?! hm ?? yes !"),
        ("---- ===== *** C++", "-- === *** c ++"),
        ("nice :-) bad :( love <3 :D see: (this)", "nice :-) bad :( love <3 :d see : ( this )"),
        ("http://a.b/c?d=e. (www.foo.org), me.you@x.co.uk!", "http://a.b/c?d=e . ( www.foo.org ) , me.you@x.co.uk !"),
        ("amazon.com end.The #tag @user", "amazon.com end . the # tag @ user"),
        ("and/or _word_ a_b", "and / or _ word _ a _ b"),
        ("“Quoted” ``x''", "“ quoted ” `` x ''"),
        ("日本語 テスト。한국어", "日 本 語 テ ス ト 。 한국어"),
        ('"हिन्दी" (शब्द)', '" हिन्दी " ( शब्द )'),
        ("हिन्दी café cafe\u0301 naïve", "हिन्दी café café naïve"),
        ("👨‍👩‍👧👍🏽 🇩🇪🇫🇷❤️", "👨‍👩‍👧 👍🏽 🇩🇪 🇫🇷 ❤️"),
        ("مرحبا، שלום!", "مرحبا ، שלום !"),
    ],
)  # fmt: skip
def test_words(text: str, words: str) -> None:
    assert tokenise(text) == words.split(" ")


def test_case_can_be_kept() -> None:
    assert tokenise("Don’t SHOUT!!!!", lowercase=False) == ["Do", "n't", "SHOUT", "!!!"]


@given(texts)
def test_every_character_that_is_not_blank_is_in_exactly_one_token(text: str) -> None:
    position = 0
    for start, end in token_spans(text):
        assert start < end
        assert not text[position:start].strip()
        assert not any(character.isspace() for character in text[start:end])
        position = end
    assert not text[position:].strip()


PIECES = ["a", "St", "dr", "Etc", "inc", "good", "excellent", "1", "30", "n", "s", "-", *".,;!?)\"'&:/@"]


@given(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), st.sampled_from(["en", "fr", "th"]))
@example("excellent.", "en")
@example("Dr.", "en")
@example("co-dr.", "fr")
def test_short_cuts_give_what_the_pattern_gives(text: str, language: str) -> None:
    pattern = re.compile(token_pattern(language))
    assert tokenise(text, language=language) == [normalise(token) for token in pattern.findall(text)]
    assert token_spans(text, language) == [found.span() for found in pattern.finditer(text)]


@given(texts)
def test_tokens_depend_only_on_what_is_between_two_blanks(text: str) -> None:
    assert tokenise(text) == [word for stretch in text.split() for word in tokenise(stretch)]


@given(anything, st.booleans())
def test_a_word_is_its_own_normal_form(text: str, lowercase: bool) -> None:
    for word in tokenise(text, lowercase=lowercase):
        assert word
        assert word.split() == [word]
        assert normalise(word, lowercase=lowercase) == word
        word.encode("utf-8")


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a.",
        "1.",
        "1,",
        "a-",
        "a'",
        "n't",
        "x@",
        "@a.",
        "http://",
        "http://.",
        "-",
        "a\u0301",
        "www.",
        ":-)",
        "A&",
        "b_",
    ],
)
def test_time_is_linear_in_the_length_of_a_word(unit: str) -> None:
    """No clock: a pattern that were quadratic in these would need hours."""
    text = unit * 200_000
    assert sum(end - start for start, end in token_spans(text)) == len(text)
