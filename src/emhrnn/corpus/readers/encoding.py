"""The encoding of a text file, detected before anything is read from it.

UTF-8 and UTF-16 are recognised for certain. Text of another encoding cannot be told apart for certain, so the usual one
is taken: cp1252 (Windows, Western Europe) where the text is in Latin letters, else what charset-normalizer finds.
`emhrnn info` and `emhrnn train` print the encoding; `--encoding` overrides it.
"""

import codecs
import re
from collections.abc import Callable
from io import BytesIO

from emhrnn.errors import DataError

UTF8, WESTERN = "utf-8", "cp1252"
OTHERS = ["cp1250", "cp1251", "cp1253", "cp1255", "cp1256", "koi8_r", "gb18030", "big5", "cp949"]
JAPANESE = ("cp932", "euc_jp")
SAMPLE_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20
_WORD = re.compile(r"\w+")
_SYMBOL_IN_WORD = re.compile(r"[a-z][¡-¿]+[a-z]")
_ESCAPED = re.compile("[\udc80-\udcff]")
_HIRAGANA = re.compile("[\u3041-\u309f]")


def check_encoding(name: str | None) -> str | None:
    """The name, if Python knows a text encoding of this name; else a DataError."""
    try:
        if name is None or "".encode(name) is not None:
            return name
    except LookupError:
        pass
    raise DataError(f"unknown encoding {name!r}; give for example utf-8, utf-16, cp1252, cp1251, shift_jis or gb18030")


def codec_of(encoding: str) -> tuple[str, str]:
    """Python's codec and error handler: without a BOM, and with bytes that cannot be decoded as lone surrogates, which
    `clean_text` replaces and counts."""
    name = codecs.lookup(encoding).name
    if name.startswith(("utf-16", "utf-32")):
        return name, "replace"
    return "utf-8-sig" if name == UTF8 else name, "surrogateescape"


def detect(read: Callable[[int], bytes]) -> str:
    """The encoding of the text that `read` gives, so many bytes at a time. Pure ASCII is read to its end."""
    block = read(_BLOCK_BYTES)
    if wide := _utf16(block):
        return wide
    while block.isascii():
        block = read(_BLOCK_BYTES)
        if not block:
            return UTF8
    first = next(index for index, byte in enumerate(block) if byte > 127)
    start = block.rfind(b"\n", 0, first) + 1
    sample = (block[start:] + read(SAMPLE_BYTES))[:SAMPLE_BYTES]
    return _of_sample(sample[: sample.rfind(b"\n") + 1] or sample)  # whole lines, so that no character is cut in two


def decode(data: bytes, encoding: str | None = None) -> str:
    """Bytes as text, in the encoding given or else detected."""
    return data.decode(*codec_of(encoding or detect(BytesIO(data).read)))


def _utf16(data: bytes) -> str | None:
    """By its BOM or, without one, by every other byte of eight being zero, as it is with Latin letters."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    even, odd = any(data[:8:2]), any(data[1:8:2])
    if len(data) < 8 or even == odd:
        return None
    return "utf-16-le" if even else "utf-16-be"


def _of_sample(data: bytes) -> str:
    text = data.decode(UTF8, "surrogateescape")
    broken = len(_ESCAPED.findall(text))
    others = sum(character > "\x7f" for character in text) - broken
    if others >= broken:  # UTF-8, perhaps with some broken bytes
        return UTF8
    if _is_western(data):
        return WESTERN
    for name in JAPANESE:
        text = data.decode(name, "replace")
        if "\ufffd" not in text and 5 * len(_HIRAGANA.findall(text)) > sum(character > "\x7f" for character in text):
            return name
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_isolation=OTHERS).best()
    return WESTERN if best is None else best.encoding


def _is_western(data: bytes) -> bool:
    """Whether the text in cp1252 looks like one: its words are mostly ASCII letters, and no symbol is within a word."""
    text = data.decode(WESTERN, "replace")
    letters = "".join(word for word in _WORD.findall(text) if not word.isascii())
    other = sum(character > "\x7f" for character in letters)
    return "\ufffd" not in text and 2 * other <= len(letters) and not _SYMBOL_IN_WORD.search(text)
