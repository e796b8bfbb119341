"""From raw text to word ids, fast: what scoring and corpus preparation run on every document.

    texts -> sentences -> stretches between blanks -> (table: stretch -> ids) -> ids, sentence and document offsets

The result is the same as `vocabulary.encode(read_document(text).words)`, a test says so. Character offsets are not
computed here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from emhrnn.errors import ConfigError
from emhrnn.text.native_stretches import stretches
from emhrnn.text.sentences import split_sentences
from emhrnn.text.stretches import Words
from emhrnn.text.vocabulary import WordIds

CHUNK_SENTENCES = 10_000  # encoded at once: enough that a call costs nothing, and about a megabyte


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
    """Encodes texts with one vocabulary. Keep it: it is fast once it has seen the common words.

    Text is looked up by compiled code where a C++ compiler is at hand; `native=False` keeps to Python.
    """

    def __init__(
        self,
        vocabulary: WordIds,
        *,
        language: str = "en",
        lowercase: bool = True,
        limits: Limits | None = None,
        native: bool = True,
    ) -> None:
        self.vocabulary = vocabulary
        self.language = language
        self.lowercase = lowercase
        self.limits = limits or Limits()
        self._stretches = stretches(vocabulary, lowercase=lowercase, native=native)

    def encode(self, text: str) -> Encoded:
        """One document."""
        return self.encode_many([text])

    def encode_many(self, texts: Iterable[str]) -> Encoded:
        """Several documents, one after the other."""
        return self.encode_sentences(split_sentences(text, self.language) for text in texts)

    def encode_sentences(self, documents: Iterable[list[str]]) -> Encoded:
        """Documents whose sentences are already known. Sentences without a word are left out."""
        ends = [0]  # of each document, in sentences
        chunks: list[Words] = []
        sentences: list[str] = []
        for document in documents:
            sentences += document
            ends.append(ends[-1] + len(document))
            if len(sentences) >= CHUNK_SENTENCES:
                chunks.append(self._stretches.encode(sentences))
                sentences = []
        chunks.append(self._stretches.encode(sentences))
        words, lengths = map(np.concatenate, zip(*chunks, strict=True))
        full = lengths > 0
        lengths, document_offsets = lengths[full], _offsets(full)[ends]
        if self.limits == Limits():
            return Encoded(words, _offsets(lengths), document_offsets, np.zeros(len(ends) - 1, dtype=bool))
        return _limited(words, lengths, document_offsets, self.limits)


def _limited(
    words: Int32[np.ndarray, " words"],
    lengths: Int64[np.ndarray, " sentences"],
    document_offsets: Int64[np.ndarray, " documents_plus_1"],
    limits: Limits,
) -> Encoded:
    """The documents as far as the limits allow; `lengths` are the words of each sentence."""
    kept, kept_sentences = lengths, np.diff(document_offsets)
    if limits.max_sentences is not None:
        number_in_document = np.arange(len(lengths)) - np.repeat(document_offsets[:-1], kept_sentences)
        kept = np.where(number_in_document < limits.max_sentences, kept, 0)
        kept_sentences = np.minimum(kept_sentences, limits.max_sentences)
    if limits.max_words_per_sentence is not None:
        kept = np.minimum(kept, limits.max_words_per_sentence)
    cut = np.diff(_offsets(lengths - kept)[document_offsets]) > 0
    if cut.any():
        number_in_sentence = np.arange(len(words)) - np.repeat(_offsets(lengths)[:-1], lengths)
        words = words[number_in_sentence < np.repeat(kept, lengths)]
    return Encoded(words, _offsets(kept[kept > 0]), _offsets(kept_sentences), cut)


def _offsets(lengths: Integer[np.ndarray, " n"] | Bool[np.ndarray, " n"]) -> Int64[np.ndarray, " n_plus_1"]:
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
