"""From raw text to word ids, fast: what scoring and corpus preparation run on every document.

    texts -> sentences -> stretches between blanks -> (table: stretch -> ids) -> ids, sentence and document offsets

The words of a stretch depend on nothing but the stretch ("don't," is always `do n't ,`), and few distinct stretches
make up most of any text. So each is tokenised, lower-cased and looked up once, and its ids are kept as bytes; after
that a document costs one split, one dictionary look-up per stretch and one join. The result is the same as
`vocabulary.encode(read_document(text).words)`, a test says so. Character offsets are not computed here.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32, Int64

from emhrnn.errors import ConfigError
from emhrnn.text.sentences import split_sentences
from emhrnn.text.vocabulary import Vocabulary
from emhrnn.text.words import tokenise

_ID_BYTES = np.dtype(np.int32).itemsize


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Caps on what is read of a document. The default has none; documents that a cap shortens are marked."""

    max_words_per_sentence: int | None = None
    max_sentences: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_words_per_sentence", "max_sentences"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; give a number of 1 or more, or leave it out to read everything")


@dataclass(frozen=True, eq=False)
class Encoded:
    """Documents as word ids, in the ragged form of `corpus.batch.Batch`, except that a blank text has no sentence.
    `cut` marks the documents that a limit shortened."""

    words: Int32[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]
    cut: Bool[np.ndarray, " documents"]

    def __len__(self) -> int:
        return len(self.document_offsets) - 1


class Encoder:
    """Encodes texts with one vocabulary. Keep it: it is fast once it has seen the common words."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        language: str = "en",
        lowercase: bool = True,
        limits: Limits | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.language = language
        self.lowercase = lowercase
        self.limits = limits or Limits()
        self._table = _IdTable(vocabulary, lowercase=lowercase)

    def encode(self, text: str) -> Encoded:
        """One document."""
        return self.encode_many([text])

    def encode_many(self, texts: Iterable[str]) -> Encoded:
        """Several documents, one after the other."""
        return self.encode_sentences(split_sentences(text, self.language) for text in texts)

    def encode_sentences(self, documents: Iterable[list[str]]) -> Encoded:
        """Documents whose sentences are already known. Sentences without a word are left out."""
        chunks: list[bytes] = []  # the ids of each sentence
        document_offsets = [0]
        cut: list[bool] = []
        for sentences in documents:
            encoded = self._encode_sentences(sentences)
            kept = self._apply_limits(encoded)
            chunks += kept
            document_offsets.append(len(chunks))
            cut.append(kept is not encoded and sum(map(len, kept)) < sum(map(len, encoded)))
        sentence_offsets = np.zeros(len(chunks) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, chunks), np.int64, len(chunks)) // _ID_BYTES, out=sentence_offsets[1:])
        return Encoded(
            np.frombuffer(bytearray().join(chunks), dtype=np.int32),  # bytearray: the array can be written to
            sentence_offsets,
            np.array(document_offsets, dtype=np.int64),
            np.array(cut, dtype=bool),
        )

    def _encode_sentences(self, sentences: list[str]) -> list[bytes]:
        ids_of = self._table.__getitem__
        encoded = [b"".join(map(ids_of, sentence.split())) for sentence in sentences]
        return [ids for ids in encoded if ids]

    def _apply_limits(self, encoded: list[bytes]) -> list[bytes]:
        if self.limits.max_sentences is not None:
            encoded = encoded[: self.limits.max_sentences]
        if self.limits.max_words_per_sentence is not None:
            end = self.limits.max_words_per_sentence * _ID_BYTES
            encoded = [ids[:end] for ids in encoded]
        return encoded


class _IdTable(dict[str, bytes]):
    """Stretch of text without blanks -> the ids of its words, as int32 bytes."""

    def __init__(self, vocabulary: Vocabulary, *, lowercase: bool, max_entries: int = 500_000) -> None:
        super().__init__()
        self._vocabulary = vocabulary
        self._lowercase = lowercase
        self._max_entries = max_entries

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
