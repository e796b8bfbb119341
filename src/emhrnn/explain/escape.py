"""Text of a document made visible and harmless, for a terminal and for a page.

A document may hold anything: escape sequences that a terminal would obey, bidirectional controls that reorder what
follows them, NUL, halves of surrogate pairs that no file can hold. None of it may act; all of it should be seen.
"""

import html
import re
import unicodedata

BIDI_CONTROLS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
SPACES = "\t\n\v\f\r\x85\u2028\u2029"  # they separate words: shown as one space


class VisibleCharacters(dict[int, str | int]):
    """A lazy `str.translate` table: each character is judged once, then looked up."""

    def __missing__(self, code: int) -> str | int:
        self[code] = shown = visible_character(code)
        return shown


def visible_character(code: int) -> str | int:
    """A character as it is shown: itself, a picture of it, or its code."""
    character = chr(code)
    if character in SPACES:
        return " "
    if code < 0x20:
        return chr(0x2400 + code)  # control pictures: NUL is shown as one small sign
    if code == 0x7F:
        return "\u2421"
    if character in BIDI_CONTROLS or unicodedata.category(character) in ("Cc", "Cs"):
        return f"\\u{code:04x}"
    return code


VISIBLE = VisibleCharacters()
BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)


def visible(text: str) -> str:
    """Control characters as pictures, bidi controls and lone surrogates as `\\u202e`, line breaks as spaces."""
    return text.translate(VISIBLE)


def without_breaks(text: str) -> str:
    """Text over several words with its `<br>` tags as spaces: the text reader counts them as blanks, too."""
    return BREAK_TAG.sub(" ", text)


def escape(text: str) -> str:
    """Text for HTML, in content or in a quoted attribute."""
    return html.escape(visible(text), quote=True)
