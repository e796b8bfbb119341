"""Sentences to word ids by way of stretches, the pieces of text between blanks.

The words of a stretch depend on nothing but the stretch ("don't," is always `do n't ,`), and few distinct stretches
make up most of any text. So each is tokenised, lower-cased and looked up once, and its ids are kept; after that a
sentence costs one split, one look-up per stretch and one join.

There are two tables with the same results: one in Python, and one in stretches.cpp, which cuts and looks up, so that
Python tokenises only what is new.
"""

import ctypes
import weakref
from array import array
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from emhrnn.compiler import try_library
from emhrnn.shapes import Int32, Int64
from emhrnn.text.language import USUAL
from emhrnn.text.vocabulary import WordIds
from emhrnn.text.words import normalise, token_spans, tokenise

SOURCE = Path(__file__).with_name("stretches.cpp")
MAX_BYTES = 32 << 20  # of the compiled table
MAX_ENTRIES, LONGEST_KEPT = 1 << 18, 40  # of the table in Python: stretches, and characters; longer ones hardly recur
_PADDING = bytes(8)  # stretches.cpp reads a text in words of eight bytes, beyond its end too

Words = tuple[Int32[np.ndarray, " words"], Int64[np.ndarray, " sentences"]]
"""The ids of all words, and how many of them are in each sentence."""

Spans = tuple[Int64[np.ndarray, " words"], Int64[np.ndarray, " words"]]
"""Where each word starts and ends, in characters of the sentences one after the other."""


def stretches(
    vocabulary: WordIds, lowercase: bool, language: str = USUAL, native: bool = True
) -> "NativeStretches | PythonStretches":
    """The compiled table, or the one in Python where that cannot or shall not be used. Both ask for the ids of words
    that are new to the vocabulary in order."""
    if native and (library := _library()) is not None:
        return NativeStretches(library, vocabulary, lowercase=lowercase, language=language)
    return PythonStretches(vocabulary, lowercase=lowercase, language=language)


class PythonStretches:
    """The table in Python. A copy, also in another process, starts with an empty one."""

    def __init__(self, vocabulary: WordIds, *, lowercase: bool, language: str = USUAL) -> None:
        self._settings = vocabulary, lowercase, language
        self._kept = lru_cache(MAX_ENTRIES)(self._tokenised)

    def encode(self, sentences: list[str]) -> Words:
        """The words of some sentences."""
        encoded = [b"".join(map(self._ids, sentence.split())) for sentence in sentences]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded)) // np.dtype(np.int32).itemsize
        return np.frombuffer(bytearray().join(encoded), dtype=np.int32), lengths  # of a bytearray: can be written to

    def locate(self, sentences: list[str]) -> tuple[Words, Spans]:
        """The words, and where they stand. Without the table: the pattern must be run to see where a word ends."""
        vocabulary, lowercase, language = self._settings
        spans = [token_spans(sentence, language) for sentence in sentences]
        ids = [
            vocabulary.id_of(normalise(sentence[start:end], lowercase=lowercase))
            for sentence, in_sentence in zip(sentences, spans, strict=True)
            for start, end in in_sentence
        ]
        lengths = np.array([len(in_sentence) for in_sentence in spans], dtype=np.int64)
        before = np.cumsum([0, *map(len, sentences)])[:-1]
        places = np.array([*chain.from_iterable(spans)], dtype=np.int64).reshape(-1, 2)
        starts, ends = (places + np.repeat(before, lengths)[:, None]).T.copy()
        return (np.array(ids, dtype=np.int32), lengths), (starts, ends)

    def _ids(self, stretch: str) -> bytes:
        return self._kept(stretch) if len(stretch) <= LONGEST_KEPT else self._tokenised(stretch)

    def _tokenised(self, stretch: str) -> bytes:
        """The ids of the words, as int32 bytes."""
        vocabulary, lowercase, language = self._settings
        return array("i", map(vocabulary.id_of, tokenise(stretch, lowercase=lowercase, language=language))).tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return stretches, (*self._settings, False)


class NativeStretches:
    """Serves one thread at a time; others wait. A copy, also in another process, starts with an empty table."""

    def __init__(
        self,
        library: ctypes.CDLL,
        vocabulary: WordIds,
        *,
        lowercase: bool,
        language: str = USUAL,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._library = library
        self._vocabulary = vocabulary
        self._lowercase, self._language = lowercase, language
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
        words = [tokenise(part, lowercase=self._lowercase, language=self._language) for part in parts]
        ids = np.fromiter(map(self._vocabulary.id_of, chain.from_iterable(words)), np.int32)
        several = [part for part, of_part in zip(parts, words, strict=True) if len(of_part) > 1]
        sizes = [len(_bytes(part[start:end])) for part in several for start, end in token_spans(part, self._language)]
        return ids, np.fromiter(map(len, words), np.int64, len(words)), np.array(sizes, dtype=np.int32)

    @property
    def table_bytes(self) -> int:
        return int(self._library.table_bytes(self._table))

    def __reduce__(self) -> tuple[Any, ...]:
        return stretches, (self._vocabulary, self._lowercase, self._language)


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


def _pointer(values: np.ndarray) -> int:
    address: int = values.ctypes.data
    return address
