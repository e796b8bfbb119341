"""From raw text to word ids, fast: what scoring and corpus preparation run on every document.

    texts -> sentences -> stretches between blanks -> (table: stretch -> ids) -> ids, sentence and document offsets

The result is the same as `vocabulary.encode(read_document(text).words)`, a test says so. `locate` also tells where each
word stands, as `read_document` does.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Int32, Int64, Integer

from emhrnn.errors import ConfigError
from emhrnn.text.native_stretches import stretches
from emhrnn.text.sentences import split_sentences
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


@dataclass(frozen=True, eq=False)
class Located:
    """A document as word ids: word i is `text[starts[i] : ends[i]]` as written; sentence j is
    ids[sentence_offsets[j] : sentence_offsets[j + 1]]; no sentence is empty."""

    text: str
    ids: Int32[np.ndarray, " words"]
    starts: Int64[np.ndarray, " words"]
    ends: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_sentences(self) -> int:
        return len(self.sentence_offsets) - 1


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
        chunks = [self._stretches.encode(sentences) for sentences in _chunks(documents, ends)]
        words, lengths = map(np.concatenate, zip(*chunks, strict=True))
        full = lengths > 0
        lengths, document_offsets = lengths[full], _offsets(full)[ends]
        if self.limits == Limits():
            return Encoded(words, _offsets(lengths), document_offsets, np.zeros(len(ends) - 1, dtype=bool))
        return _limited(words, lengths, document_offsets, self.limits)

    def locate(self, texts: Sequence[str]) -> list[Located]:
        """Each document, and where its words stand. Limits do not apply."""
        ends = [0]
        columns: list[tuple[np.ndarray, ...]] = []
        position = 0  # of the chunk in all texts, in characters: those of the sentences of a text are those of the text
        for sentences in _chunks((split_sentences(text, self.language) for text in texts), ends):
            words, spans = self._stretches.locate(sentences)
            columns.append((*words, *(place + position for place in spans)))
            position += sum(map(len, sentences))
        ids, lengths, starts, stops = map(np.concatenate, zip(*columns, strict=True))
        full = lengths > 0
        offsets = _offsets(lengths[full])  # of all sentences, in words
        bounds = _offsets(full)[ends].tolist()  # of each document, in sentences
        located, position = [], 0
        for text, (first, last) in zip(texts, pairwise(bounds), strict=True):
            words_of = slice(offsets[first], offsets[last])
            located.append(
                Located(
                    text, ids[words_of].copy(), starts[words_of] - position, stops[words_of] - position,
                    offsets[first : last + 1] - offsets[first],
                )
            )  # fmt: skip
            position += len(text)
        return located


def _chunks(documents: Iterable[list[str]], ends: list[int]) -> Iterator[list[str]]:
    """Sentences to encode at once, at least one list of them; the ends of the documents are noted on the way."""
    sentences: list[str] = []
    for document in documents:
        sentences += document
        ends.append(ends[-1] + len(document))
        if len(sentences) >= CHUNK_SENTENCES:
            yield sentences
            sentences = []
    yield sentences


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
