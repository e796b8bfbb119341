"""The compiled twin of `stretches`: stretches.cpp cuts and looks up, Python tokenises only what is new."""

import ctypes
import weakref
from functools import cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64

from emhrnn.compiling import try_library
from emhrnn.text.stretches import PythonStretches, Spans, Stretches, Words
from emhrnn.text.vocabulary import WordIds
from emhrnn.text.words import token_spans, tokenise

SOURCE = Path(__file__).with_name("stretches.cpp")
MAX_BYTES = 32 << 20
_PADDING = bytes(8)  # stretches.cpp reads a text in words of eight bytes, beyond its end too


def stretches(vocabulary: WordIds, *, lowercase: bool, native: bool = True) -> Stretches:
    """The compiled table, or the one in Python where that cannot or shall not be used."""
    library = _library() if native else None
    if library is None:
        return PythonStretches(vocabulary, lowercase=lowercase)
    return NativeStretches(library, vocabulary, lowercase=lowercase)


class NativeStretches:
    """Serves one thread at a time; others wait. A copy, also in another process, starts with an empty table."""

    def __init__(
        self, library: ctypes.CDLL, vocabulary: WordIds, *, lowercase: bool, max_bytes: int = MAX_BYTES
    ) -> None:
        self._library = library
        self._vocabulary = vocabulary
        self._lowercase = lowercase
        self._lock = Lock()
        self._table = ctypes.c_void_p(library.open_table(int(lowercase), max_bytes))
        weakref.finalize(self, library.close_table, self._table)

    def encode(self, sentences: list[str]) -> Words:
        encoded = [_bytes(sentence) for sentence in sentences]
        with self._lock:
            return self._encode(encoded, b"".join([*encoded, _PADDING]))

    def locate(self, sentences: list[str]) -> tuple[Words, Spans]:
        encoded = [_bytes(sentence) for sentence in sentences]
        text = b"".join([*encoded, _PADDING])
        with self._lock:
            words = self._encode(encoded, text)
            starts, ends = (np.empty(len(words[0]), np.int64) for _ in range(2))
            self._library.write_spans(self._table, _pointer(starts), _pointer(ends))
        if len(text) - len(_PADDING) > sum(map(len, sentences)):  # some characters are several bytes
            before = _characters_before(text)
            starts, ends = before[starts], before[ends]
        return words, (starts, ends)

    def _encode(self, encoded: list[bytes], text: bytes) -> Words:
        sizes = np.fromiter(map(len, encoded), np.int64, len(encoded))
        lengths = np.empty_like(sizes)
        self._library.find(self._table, text, len(sizes), _pointer(sizes))
        ids, counts, bytes_of = self._ids_of(self._new_parts())
        n = self._library.learn(self._table, _pointer(ids), _pointer(counts), _pointer(bytes_of))
        words = np.empty(n, np.int32)
        self._library.write(self._table, _pointer(words), _pointer(lengths))
        return words, lengths

    def _new_parts(self) -> list[str]:
        size = ctypes.c_int64()
        parts = self._library.new_parts(self._table, ctypes.byref(size))
        return ctypes.string_at(parts, size.value).decode("utf-8", "surrogatepass").split(" ")[:-1]

    def _ids_of(
        self, parts: list[str]
    ) -> tuple[Int32[np.ndarray, " ids"], Int64[np.ndarray, " parts"], Int32[np.ndarray, " ids_of_several"]]:
        """The ids of all parts, how many each has, and how many bytes the words are where a part has several."""
        words = [tokenise(part, lowercase=self._lowercase) for part in parts]
        ids = np.fromiter(map(self._vocabulary.id_of, chain.from_iterable(words)), np.int32)
        several = [part for part, of_part in zip(parts, words, strict=True) if len(of_part) > 1]
        sizes = [len(_bytes(part[start:end])) for part in several for start, end in token_spans(part)]
        return ids, np.fromiter(map(len, words), np.int64, len(words)), np.array(sizes, dtype=np.int32)

    @property
    def table_bytes(self) -> int:
        return int(self._library.table_bytes(self._table))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._vocabulary, self._lowercase)


def _again(vocabulary: WordIds, lowercase: bool) -> Stretches:
    return stretches(vocabulary, lowercase=lowercase)


@cache
def _library() -> ctypes.CDLL | None:
    library = try_library(SOURCE, instead="text is read in Python")
    if library is not None:
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        for name, result, *arguments in (
            ("open_table", pointer, integer, integer),
            ("close_table", None, pointer),
            ("find", integer, pointer, ctypes.c_char_p, integer, pointer),
            ("new_parts", pointer, pointer, pointer),
            ("learn", integer, pointer, pointer, pointer, pointer),
            ("write", None, pointer, pointer, pointer),
            ("write_spans", None, pointer, pointer, pointer),
            ("table_bytes", integer, pointer),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    return library


def _bytes(text: str) -> bytes:
    """Lone surrogates pass: Python's normal form, which knows what becomes of them, must see them."""
    return text.encode("utf-8", "surrogatepass")


def _characters_before(text: bytes) -> Int64[np.ndarray, " bytes"]:
    """How many characters begin before each byte."""
    begins = (np.frombuffer(text, np.uint8) & 0xC0) != 0x80
    before: Int64[np.ndarray, " bytes"] = np.cumsum(begins) - begins
    return before


def _pointer(values: np.ndarray) -> int:
    address: int = values.ctypes.data
    return address
