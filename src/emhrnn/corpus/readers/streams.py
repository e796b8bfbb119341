"""Bytes and lines of a file, plain or compressed, with a meter of how far reading has come.

Compression is recognised by the first bytes, not by the name. Whatever goes wrong inside a file becomes one DataError.
"""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from emhrnn.errors import DataError

GZIP, XZ, ZSTD, BZIP2 = b"\x1f\x8b", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"BZh"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
Stream: TypeAlias = "io.BufferedReader[Any] | gzip.GzipFile | lzma.LZMAFile | bz2.BZ2File"
BUFFER_BYTES = 1 << 18


class Meter:
    """Bytes read of all files of a source, as they lie on disk."""

    def __init__(self, total: int) -> None:
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
def open_bytes(path: Path, meter: Meter | None = None) -> Iterator[Stream]:
    """The file's content, decompressed; errors of the disk, of the compression and of its end are told as DataError."""
    with explain_damage(path), io.BufferedReader(io.FileIO(path), BUFFER_BYTES) as raw:
        stream = _decompressed(raw)
        if meter is None:
            yield stream
        else:
            with meter.file(path.stat().st_size, raw.tell):
                yield stream


@contextmanager
def explain_damage(path: Path) -> Iterator[None]:
    """Turns every way in which a file can be unreadable into one line for the user."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the name") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder, a file is needed; give one of its files") from None
    except EOFError:
        raise DataError(f"{path} is cut off: its compressed data ends too early; copy or download it again") from None
    except (zlib.error, lzma.LZMAError, gzip.BadGzipFile, pa.ArrowInvalid) as error:
        raise DataError(f"{path} is damaged ({_one_line(error)}); copy or download it again") from None
    except OSError as error:
        # pyarrow tells of a cut-off zstd stream as an OSError without a number.
        if error.errno is None:
            raise DataError(f"{path} is damaged ({_one_line(error)}); copy or download it again") from None
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


@contextmanager
def open_text(path: Path, meter: Meter | None = None, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
    """UTF-8 with or without BOM; a broken byte passes as a lone surrogate, which `clean_text` replaces and names."""
    with open_bytes(path, meter) as stream:
        refuse_utf16(stream.peek(8), path)
        with io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline=newline) as text:
            yield text


def refuse_utf16(data: bytes, name: Path | str) -> None:
    """By its mark or, without one, by every other byte of eight being zero, as it is with Latin letters."""
    even, odd = data[:8:2], data[1:8:2]
    if data[:2] in UTF16 or (len(data) >= 8 and {any(even), any(odd)} == {True, False}):
        raise DataError(f"{name} is UTF-16; save it as UTF-8")


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
    if magic.startswith(ZSTD):
        return io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"), BUFFER_BYTES)
    return raw


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
