"""One file to read: its encoding, its bytes and lines, plain or compressed, how far reading has come, and its rows as
records.

UTF-8 and UTF-16 are recognised for certain. Text of another encoding cannot be told apart for certain, so the usual one
is taken: cp1252 (Windows, Western Europe) where the text is in Latin letters, else what charset-normalizer finds.
`emhrnn info` and `emhrnn train` print the encoding; `--encoding` overrides it.

Compression is recognised by the first bytes, not by the name. Whatever goes wrong inside a file becomes one DataError.
"""

import bz2
import codecs
import gzip
import io
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

from emhrnn.corpus.record import (
    BROKEN,
    Columns,
    Record,
    Where,
    clean_label,
    clean_name,
    clean_spans,
    clean_text,
    clean_weight,
)
from emhrnn.errors import DataError
from emhrnn.extras import pyarrow as pa
from emhrnn.files import refuse_pipe

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


GZIP, XZ, ZSTD, BZIP2 = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"BZh"
Stream: TypeAlias = "io.BufferedReader[Any] | gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File"
BUFFER_BYTES = 1 << 18


class ByteMeter:
    """Bytes read of all files of a source, as they lie on disk."""

    def __init__(self, total: int = 0) -> None:
        self.total = total
        self._finished = 0
        self._position: Callable[[], int] | None = None

    @property
    def done(self) -> int:
        return self._finished + (self._position() if self._position else 0)

    @contextmanager
    def file(self, size: int, position: Callable[[], int]) -> Iterator[None]:
        """While the block runs, `position` tells how many of the file's `size` bytes are read."""
        self._position = position
        try:
            yield
        finally:
            self._position = None
            self._finished += size


@contextmanager
def open_bytes(path: Path, meter: ByteMeter | None = None) -> Iterator[Stream]:
    """The file's content, decompressed; errors of the disk, of the compression and of its end raise DataError."""
    with (
        explain_damage(path),
        io.BufferedReader(io.FileIO(path), BUFFER_BYTES) as raw,
        (meter or ByteMeter()).file(path.stat().st_size, raw.tell),
    ):
        yield _decompressed(raw)


@contextmanager
def explain_damage(path: Path) -> Iterator[None]:
    """Turns every way in which a file can be unreadable into one line for the user. A pipe is refused before anybody
    waits for its writer."""
    refuse_pipe(path)
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the name") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, a file is needed; give one of its files") from None
    except EOFError:
        raise DataError(f"{path} is cut off: its compressed data ends too early; copy or download it again") from None
    except _damage() as error:
        raise DataError(f"{path} is damaged ({_one_line(error)}); copy or download it again") from None
    except OSError as error:
        # pyarrow tells of a cut-off zstd stream as an OSError without a number.
        if error.errno is None:
            raise DataError(f"{path} is damaged ({_one_line(error)}); copy or download it again") from None
        raise DataError(f"{path} cannot be read: {error.strerror}; correct that, and try again") from None


def head(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes, decompressed: enough to tell one format from another. A damaged file shows when it is read."""
    with open_bytes(path) as stream:
        return stream.read(size)


def _decompressed(raw: "io.BufferedReader[Any]") -> Stream:
    magic = raw.peek(6)
    if magic.startswith(GZIP):
        return gzip.GzipFile(fileobj=raw, mode="rb")
    if magic.startswith(XZ):
        return lzma.LZMAFile(raw)
    if magic.startswith(BZIP2):
        return bz2.BZ2File(raw)
    if magic.startswith(ZSTD):  # frames with a checksum are compared with it, as in the others
        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"), BUFFER_BYTES)
    return raw


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


@dataclass(frozen=True, eq=False)
class InputFile:
    """One file to read. The reader puts the columns that it took into `taken`, by role."""

    path: Path
    columns: Columns = field(default_factory=Columns)
    meter: ByteMeter = field(default_factory=ByteMeter)
    taken: dict[str, str] = field(default_factory=dict)
    lenient: bool = False  # a row that cannot be used is a record with a fault, not an error
    encoding: str | None = None  # of text; None: detect
    encodings: dict[str, None] = field(default_factory=dict)  # those that were used, in order
    present: dict[str, None] = field(default_factory=dict)  # columns of the tables, in order

    @contextmanager
    def open_text(self, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
        """The file's text; a byte that cannot be decoded is a lone surrogate, which `clean_text` replaces and names."""
        encoding = self.encoding
        if encoding is None:
            with open_bytes(self.path) as stream:
                encoding = detect(stream.read)
        self.encodings[encoding] = None
        codec, errors = codec_of(encoding)
        with (
            open_bytes(self.path, self.meter) as stream,
            io.TextIOWrapper(stream, encoding=codec, errors=errors, newline=newline) as text,
        ):
            yield text

    def resolve(self, present: list[str]) -> Columns:
        self.present.update(dict.fromkeys(present))  # known also where it is not clear which of them has the text
        columns = self.columns.resolve(present, str(self.path))
        self.taken.update(columns.to_dict())
        return columns

    def where(self, row: int) -> Where:
        return Where(str(self.path), row)

    def record(
        self,
        row: int,
        values: Mapping[str, Any],
        sentences: tuple[str, ...] | None = None,
        kept: dict[str, Any] | None = None,
    ) -> Record:
        """A record of values by role, cleaned. A missing text is an empty one; skipping it is not the reader's task.
        `kept` is the row as it is, for `Columns.keep`."""
        text, fault = values.get("text"), None
        if not isinstance(text, str):
            fault = "no text"
            if text is not None:
                kind = type(text).__name__
                fault = self.fault(
                    row, f": the text is of type {kind}, a string is needed", "name the text column"
                ).fault
            text = ""
        label = values.get("label") if self.columns.labelled else None
        if isinstance(label, dict):
            raise DataError(f"{self.where(row)}: the label is an object; give the column of a string, number or list")
        if isinstance(label, str) and BROKEN in clean_text(label)[1]:
            raise DataError(
                f"{self.where(row)}: the label {clean_text(label)[0]!r} has bytes that cannot be decoded, which could "
                "merge classes; save the file as UTF-8, or give its --encoding"
            )
        text, repairs = clean_text(text)
        return Record(
            text=text,
            label=clean_label(label),
            where=self.where(row),
            id=clean_name(values.get("id")),
            user=clean_name(values.get("user")),
            product=clean_name(values.get("product")),
            split=clean_name(values.get("split")),
            sentences=sentences,
            repairs=repairs,
            weight=clean_weight(values["weight"], self.where(row)) if "weight" in values else None,
            spans=clean_spans(values["spans"], self.where(row)) if "spans" in values else None,
            kept=kept if self.columns.keep else None,
            fault=fault if self.lenient else None,
        )

    def fault(self, row: int, what: str, remedy: str) -> Record:
        """What becomes of a row that cannot be used: an error, or a record that says why. `what` follows the place."""
        if not self.lenient:
            raise DataError(f"{self.where(row)}{what}; {remedy}")
        return Record("", None, self.where(row), fault=what.lstrip(" :"))


def _damage() -> tuple[type[Exception], ...]:
    """Errors of damaged files; those of Arrow only where it was used."""
    arrow = (pa.ArrowInvalid,) if "pyarrow" in sys.modules else ()
    # zipfile raises a NotImplementedError for a method of compression that does not exist
    return zlib.error, lzma.LZMAError, gzip.BadGzipFile, zipfile.BadZipFile, NotImplementedError, *arrow
