import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from emhrnn.explain.escape import BIDI_CONTROLS, escape, visible, without_breaks

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in shown)
    assert not set(BIDI_CONTROLS) & set(shown)
    shown.encode("utf-8")


@given(ANY_TEXT)
def test_escaped_text_holds_no_markup(text: str) -> None:
    assert not set("<>\"'") & set(escape(text))


@given(st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters=BIDI_CONTROLS)))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_what_is_hidden_is_seen() -> None:
    assert visible("a\x00b\x1b\x7f\x9b\u202ec\ud800") == "a␀b␛␡\\u009b\\u202ec\\ud800"
    assert visible("one\ntwo\tthree\u2028four") == "one two three four"


def test_break_tags_are_blanks() -> None:
    assert without_breaks("one<br /><BR>two<b>") == "one  two<b>"
