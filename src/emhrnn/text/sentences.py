"""Where sentences end: sentencex, made safe for any string.

`split_sentences(text)` cuts a text into pieces of which no character is lost: the lengths of the pieces add up to the
length of the text, so cumulative lengths are offsets into the original string.

sentencex (rules and abbreviations of many languages, compiled) decides where to cut. What is added here:

- it drops the blank line at its internal 10 kB blocks: pieces are found again in the text;
- it panics on multi-byte blanks such as U+00A0 and refuses lone surrogates: it is shown a copy of the same length in
  which those are a space and U+FFFD;
- `<br>`, as in film reviews taken from web pages, is markup, not text: one is a newline, two in a row are an empty
  line, which ends a sentence. The pieces show blanks in its place.

A newline alone does not end a sentence (text may be hard-wrapped); an empty line does.
"""

import re
from itertools import pairwise

import sentencex

_BREAK = r"<[bB][rR]\s?/?>\s*"
_BREAKS = re.compile(rf"{_BREAK}(?:{_BREAK})*")  # not (...)+: what starts with a literal is searched 8 x faster
_USUAL_BREAKS = "<br /><br />"
_WIDE_SPACE = re.compile("[\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")  # not one byte in UTF-8
_SURROGATE = re.compile("[\ud800-\udfff]")


def split_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text with the blanks around them; a piece may be blank. `language` is an ISO 639-1 code."""
    text = _readable(text)
    try:
        pieces = _segment(text, language)
    except UnicodeEncodeError:
        text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
        pieces = _segment(text, language)
    return pieces if "".join(pieces) == text else _recover(text, pieces)


def _readable(text: str) -> str:
    """The same text, character for character, without markup and with blanks that sentencex can read."""
    if "<" in text:
        text = text.replace(_USUAL_BREAKS, "\n\n".ljust(len(_USUAL_BREAKS)))  # spares the pattern most of its work
        if "<" in text:
            text = _BREAKS.sub(_blank_lines, text)
    return text if text.isascii() else _WIDE_SPACE.sub(" ", text)


def _blank_lines(match: re.Match[str]) -> str:
    """Line breaks of the same length as the tags: `<br>` is one, `<br><br>` an empty line."""
    breaks = match[0].count("<") + match[0].count("\n")
    return ("\n" * min(breaks, 2)).ljust(len(match[0]))


def _segment(text: str, language: str) -> list[str]:
    try:
        return sentencex.segment(language, text)  # type: ignore[no-any-return]
    except BaseException as error:
        # A panic in Rust is not an Exception and would end the process: such a text is one sentence instead.
        if type(error).__name__ != "PanicException":
            raise
        return [text]


def _recover(text: str, pieces: list[str]) -> list[str]:
    """Cut the text where its pieces start. Only blanks lie between them, so the first match is the right one."""
    cuts = [0]
    end = 0
    for piece in pieces:
        if piece.isspace():
            continue
        start = text.find(piece, end)
        if start < 0:
            break
        end = start + len(piece)
        cuts.append(start)
    return [text[start:stop] for start, stop in pairwise([*cuts, len(text)]) if start < stop]
