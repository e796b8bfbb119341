"""Where sentences end (sentencex, made safe for any string), and which words they have.

`split_sentences(text)` cuts a text into pieces of which no character is lost: the lengths of the pieces add up to the
length of the text, so cumulative lengths are offsets into the original string.

sentencex (rules and abbreviations of many languages, compiled) decides where to cut. What is added here:

- it drops the blank line at its internal 10 kB blocks: pieces are found again in the text;
- it panics on multi-byte blanks such as U+00A0 and refuses lone surrogates: it is shown a copy of the same length in
  which those are a space and U+FFFD;
- `<br>`, as in film reviews taken from web pages, is markup, not text: one is a newline, two in a row are an empty
  line, which ends a sentence. The pieces show blanks in its place.

A newline alone does not end a sentence (text may be hard-wrapped); an empty line does.

Words are as GloVe's vocabulary has them, by one compiled pass over the text:

    don't it's we'll O'Brien  ->  do n't it 's we 'll o'brien
    3.14 1,000 10/10 9:30pm   ->  3.14 1,000 10/10 9:30 pm
    well-known U.S. Mr. AT&T  ->  well-known u.s. mr. at&t
    wait... what?!! -- :-)    ->  wait ... what ?! -- :-)

A token is a span of the text and never contains a blank; every character that is not blank is in exactly one token, so
tokens and the gaps between them are the text again. A token's *word* is its normal form: lower case, NFC, straight
apostrophes, long runs of punctuation shortened. Spans are taken before the word is made, so the form never moves them.

URLs and e-mail addresses are one token; `#` and `@` are tokens of their own, so the word behind them is known. Han
characters and kana are one token each, and Thai ones where the language is Thai; an emoji with its modifiers is one
token. In French, Italian and Catalan, an elided word is a token: l'hôtel -> l' hôtel.

A token depends only on the characters between two blanks. Scoring uses that: see `encoder`, which runs this pattern
once per distinct stretch. `python -m benchmarks.text` compares it with `tokenizers`: its `Whitespace` splitter, the
fastest there that parts words from marks, does less and ran at about half the speed, so a regular expression is used.
"""

import re
import unicodedata
from functools import cache
from itertools import pairwise

import sentencex

from emhrnn.text.language import ELIDING, USUAL

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


# What continues a word although `\w` may leave it out: accents, vowel signs (with their whole block), joiners.
_MARK = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u0900-\u0963\u0966-\u0df3\u0e31"
    "\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u0f71-\u0f84\u102b-\u103e\u1056-\u1059\u17b4-\u17d3"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f"
)
_IDEOGRAPH = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ALPHA = rf"[^\W\d_{_IDEOGRAPH}]"
_LETTER = rf"[^\W_{_IDEOGRAPH}]"  # or digit
_RUN = rf"{_LETTER}+(?:[{_MARK}]+{_LETTER}*)*"
_END = rf"(?!{_LETTER})"
_APOSTROPHE = "['’]"
_SUFFIX = rf"(?:[sSmMdD]|[lL][lL]|[rR][eE]|[vV][eE]){_END}"
_NOT = rf"[nN]{_APOSTROPHE}[tT]{_END}"
_ABBREVIATED = (
    "[mM]rs?|[mM]s|[dD]r|[jJsS]r|[sS]t|[vV]s|[eE]tc|[iI]nc|[cC]orp|[cC]o|[lL]td|[gGsS]en|[pP]rof|[rR]ev|[lL]t|[cC]apt"
)
_PICTURE = "[\u2190-\u2bff\U0001f000-\U0001faff]"

# Rules in order of precedence, in two lists by the first character. Repetitions that could fail late are bounded, so
# that the time stays linear in the text whatever it holds.
_ALPHANUMERIC_RULES = (
    "{first}",
    r"[a-zA-Z]+(?![^\s,;!?)\"])",  # most words: no rule below says otherwise for them
    r"[a-zA-Z]{5,}(?=\.(?!\S))",
    r"(?:[hH][tT][tT][pP][sS]?://|[wW][wW][wW]\.)[^\s<>\"]*[^\s<>\"'’”.,;:!?)\]}]",
    rf"[\w.+-]{{1,64}}@(?:[\w-]{{1,63}}\.){{1,8}}[^\W\d_]{{2,24}}{_END}",
    rf"(?:[\w-]{{1,63}}\.){{1,8}}(?:com|org|net|edu|gov){_END}",
    rf"{_NOT}",
    rf"{_ALPHA}+?(?={_NOT})",
    "{elided}",
    rf"(?:{_ALPHA}\.){{2,}}(?:{_ALPHA}{_END})?",
    rf"(?:{_ABBREVIATED})\.(?!\.)",
    rf"[A-Z]{{1,3}}&[A-Z]{{1,3}}{_END}",
    r"\d+(?:[.,:/]\d+)+",
    rf"{_RUN}(?:(?:-|{_APOSTROPHE}(?!{_SUFFIX})){_RUN})*",
)
_OTHER_RULES = (
    rf"{_APOSTROPHE}(?:{_SUFFIX}|(?:[eE][mM]|[tT]il|[cC]ause|\d\ds?){_END})",
    rf"[:;]-?(?:[()]+|[DPp]{_END})|<3(?!\d)",
    r"\.{2,}|[!?]{2,}|-{2,}|\*{2,}|={2,}|_{2,}|~{2,}|#{2,}|\+{2,}|'{2,}|`{2,}",
    "[\U0001f1e6-\U0001f1ff]{2}",
    rf"{_PICTURE}(?:[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff]|\u200d{_PICTURE})*",
    r"\S[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]*",
)
_THAI = rf"[\u0e01-\u0e2f\u0e30\u0e32\u0e33\u0e40-\u0e46][{_MARK}]*"
_ELIDED = rf"[aA]ujourd{_APOSTROPHE}hui|{_ALPHA}{{1,8}}{_APOSTROPHE}(?={_LETTER})(?!{_SUFFIX})"

# A word, perhaps with one mark behind it. Texts of nothing else do not wait 20 ms until the pattern is compiled.
_PLAIN = re.compile(rf"(?!(?:{_ABBREVIATED})\.)[a-zA-Z0-9]+(?:-[a-zA-Z0-9]+)*([.,;!?)\"]?)")
_REPEATED = re.compile(r"([.*=_~#+'`()-])\1{2,}")


def token_pattern(language: str = USUAL) -> str:
    """The regular expression of a token, by ISO 639-1 code. Most languages have the same."""
    special = {"{first}": _THAI if language == "th" else "", "{elided}": _ELIDED if language in ELIDING else ""}
    rules = filter(None, (special.get(rule, rule) for rule in _ALPHANUMERIC_RULES))
    return rf"(?=\S)(?:(?=[^\W_])(?:{'|'.join(rules)})|{'|'.join(_OTHER_RULES)})"


@cache
def _compiled(language: str) -> re.Pattern[str]:
    return re.compile(token_pattern(language))


def token_spans(text: str, language: str = USUAL) -> list[tuple[int, int]]:
    """Start and end of each token of a text."""
    if plain := _PLAIN.fullmatch(text):
        mark = plain.start(1)
        return [(0, mark), plain.span(1)] if plain[1] else [(0, mark)]
    return [match.span() for match in _compiled(language).finditer(text)]


def tokenise(text: str, *, lowercase: bool = True, language: str = USUAL) -> list[str]:
    """The words of a text, in order, in their normal form. A `<br>` is text here: `split_sentences` takes it away."""
    if text.isalpha() and text.isascii():  # one word; the pattern would be slow
        return [text.lower() if lowercase else text]
    if plain := _PLAIN.fullmatch(text):
        word = text[: plain.start(1)]
        return [word.lower() if lowercase else word, *filter(None, plain.groups())]
    return [normalise(token, lowercase=lowercase) for token in _compiled(language).findall(text)]


def normalise(token: str, *, lowercase: bool = True) -> str:
    """The word that a token stands for. Never empty, never with a blank in it, and its own normal form."""
    word = token.lower() if lowercase else token
    if not word.isascii():
        word = unicodedata.normalize("NFC", _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", word))
        if len(word) > 1:
            word = word.replace("’", "'")
    if len(word) > 1 and not word[-1].isalnum():
        word = _short_run(word)
    return word


def _short_run(word: str) -> str:
    """`....` is `...`, `-----` is `--`, `!!!!!` is `!!!`, `?!?!!` is `?!`."""
    if not word.strip("!?"):
        return word[:3] if len(set(word)) == 1 else "?!"
    if not word.strip("-"):
        return "--"
    return _REPEATED.sub(r"\1\1\1", word)
