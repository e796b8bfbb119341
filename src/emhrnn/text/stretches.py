"""Sentences to word ids by way of stretches, the pieces of text between blanks.

The words of a stretch depend on nothing but the stretch ("don't," is always `do n't ,`), and few distinct stretches
make up most of any text. So each is tokenised, lower-cased and looked up once, and its ids are kept; after that a
sentence costs one split, one look-up per stretch and one join.

There are two tables with the same results: this one, and a compiled one in `native_stretches`.
"""

from array import array
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int32, Int64

from emhrnn.text.vocabulary import WordIds
from emhrnn.text.words import normalise, token_spans, tokenise

_ID_BYTES = np.dtype(np.int32).itemsize

Words = tuple[Int32[np.ndarray, " words"], Int64[np.ndarray, " sentences"]]
"""The ids of all words, and how many of them are in each sentence."""

Spans = tuple[Int64[np.ndarray, " words"], Int64[np.ndarray, " words"]]
"""Where each word starts and ends, in characters of the sentences one after the other."""


@runtime_checkable
class Stretches(Protocol):
    def encode(self, sentences: list[str]) -> Words:
        """The words of some sentences. The ids of words that are new to the vocabulary are asked for in order."""

    def locate(self, sentences: list[str]) -> tuple[Words, Spans]:
        """The words of some sentences, and where they stand."""


class PythonStretches:
    def __init__(self, vocabulary: WordIds, *, lowercase: bool, max_entries: int = 500_000) -> None:
        self._table = _IdTable(vocabulary, lowercase=lowercase, max_entries=max_entries)

    def encode(self, sentences: list[str]) -> Words:
        ids_of = self._table.__getitem__
        encoded = [b"".join(map(ids_of, sentence.split())) for sentence in sentences]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded)) // _ID_BYTES
        return np.frombuffer(bytearray().join(encoded), dtype=np.int32), lengths  # of a bytearray: can be written to

    def locate(self, sentences: list[str]) -> tuple[Words, Spans]:
        """Without the table: the pattern must be run to see where a word ends."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        lengths = []
        position = 0
        for sentence in sentences:
            in_sentence = token_spans(sentence)
            for start, end in in_sentence:
                ids.append(self._table.id_of(sentence[start:end]))
                spans.append((position + start, position + end))
            lengths.append(len(in_sentence))
            position += len(sentence)
        starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T.copy()
        return (np.array(ids, dtype=np.int32), np.array(lengths, dtype=np.int64)), (starts, ends)


class _IdTable(dict[str, bytes]):
    """Stretch of text without blanks -> the ids of its words, as int32 bytes."""

    def __init__(self, vocabulary: WordIds, *, lowercase: bool, max_entries: int) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._lowercase = lowercase
        self._max_entries = max_entries

    def id_of(self, token: str) -> int:
        return self._vocabulary.id_of(normalise(token, lowercase=self._lowercase))

    def __missing__(self, stretch: str) -> bytes:
        cut = _safe_cut(stretch)
        if cut:
            ids = self[stretch[:cut]] + self[stretch[cut:]]
        else:
            words = tokenise(stretch, lowercase=self._lowercase)
            ids = array("i", map(self._vocabulary.id_of, words)).tobytes()
        if len(stretch) <= 40:  # longer ones hardly come twice
            if len(self) >= self._max_entries:
                self.clear()  # the common ones are back at once; memory stays bounded
            self[stretch] = ids
        return ids


def _safe_cut(stretch: str) -> int:
    """Where a stretch can be cut without a change to its words; 0 if that is not plain to see.

    Most new stretches are a known word with a mark before or behind it; cutting spares them the pattern.
    """
    if len(stretch) < 2:
        return 0
    if stretch[-1] in ',;!?)"' and stretch[-2].isalnum():
        return len(stretch) - 1
    if stretch[-1] == "." and (word := stretch[-6:-1]).isalpha() and word.isascii() and len(word) == 5:
        return len(stretch) - 1  # five letters are no abbreviation
    if stretch[0] in '("' and stretch[1].isalnum():
        return 1
    return 0
