"""From raw text to word ids, fast: the one reader of text, for training, predicting, explaining and scoring.

    texts -> sentences -> stretches between blanks -> (table: stretch -> ids) -> ids, sentence and document offsets

The words are those of `read_document`, the slow and plain way, with the limits applied; a test compares them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, overload

import numpy as np

from emhrnn.errors import ConfigError
from emhrnn.shapes import Bool, Int32, Int64, Integer
from emhrnn.text.language import USUAL
from emhrnn.text.stretches import stretches
from emhrnn.text.vocabulary import WordIds, word_ids
from emhrnn.text.words import normalise, split_sentences, token_spans

CHUNK_SENTENCES = 10_000  # encoded at once: enough that a call costs nothing, and about a megabyte

Text = str | tuple[str, ...]
"""A document, or its sentences where the source marks their ends."""


@dataclass(frozen=True, kw_only=True)
class TextLimits:
    """Caps on what is read of a document. The default has none; documents that a cap shortens are marked."""

    max_words_per_sentence: int | None = None
    max_sentences: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_words_per_sentence", "max_sentences"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is {value}; give a number of 1 or more, or leave it out to read everything")


@dataclass(frozen=True, kw_only=True)
class TextSettings:
    """How text becomes words. A model reads all text as its training data was read, so this is stored with both.
    `language` is an ISO 639-1 code; or "auto" for data that is not yet read."""

    language: str = USUAL
    lowercase: bool = True
    limits: TextLimits = field(default_factory=TextLimits)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TextSettings":
        """From `dataclasses.asdict`."""
        return cls(**{**values, "limits": TextLimits(**values["limits"])})


@dataclass(eq=False)
class Located:
    """A document: word i is `text[starts[i] : ends[i]]` as written; sentence j has the words sentence_offsets[j] to
    sentence_offsets[j + 1] - 1; no sentence is empty. Words beyond a limit are not in it, but the text is whole."""

    text: str
    starts: Int64[np.ndarray, " words"]
    ends: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def n_sentences(self) -> int:
        return len(self.sentence_offsets) - 1


@dataclass(frozen=True, eq=False)
class LocatedTexts(Sequence[Located]):
    """Documents as flat arrays, which cost less than an object for each; starts and ends count in the own text of a
    word. A document is taken out as a `Located`, neighbours as a slice."""

    texts: Sequence[str]
    starts: Int64[np.ndarray, " words"]
    ends: Int64[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, number: int) -> Located: ...
    @overload
    def __getitem__(self, number: slice) -> "LocatedTexts": ...
    def __getitem__(self, number: int | slice) -> "Located | LocatedTexts":
        taken = range(len(self))[number]
        if isinstance(taken, int):
            one = self[taken : taken + 1]
            return Located(one.texts[0], one.starts, one.ends, one.sentence_offsets)
        if taken.step != 1:
            raise IndexError("documents are taken out in order, without gaps")
        documents = self.document_offsets[taken.start : max(taken.start, taken.stop) + 1]
        sentences = self.sentence_offsets[documents[0] : documents[-1] + 1]
        words = slice(sentences[0], sentences[-1])
        return LocatedTexts(
            self.texts[taken.start : taken.stop],
            self.starts[words],
            self.ends[words],
            sentences - sentences[0],
            documents - documents[0],
        )


@dataclass(frozen=True, eq=False)
class Encoded:
    """Documents as word ids, in the ragged form of `corpus.batch.Batch`, except that a text without words has no
    sentence. `cut` marks the documents that a limit shortened."""

    words: Int32[np.ndarray, " words"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]
    cut: Bool[np.ndarray, " documents"]

    def __len__(self) -> int:
        return len(self.document_offsets) - 1

    @property
    def lengths(self) -> Int64[np.ndarray, " documents"]:
        """Words of each document."""
        return np.diff(self.sentence_offsets[self.document_offsets])


class WordEncoder:
    """Encodes texts with one vocabulary. Keep it: it is fast once it has seen the common words.

    Text is looked up by compiled code where a C++ compiler is at hand; `native=False` keeps to Python.
    """

    def __init__(self, vocabulary: WordIds, settings: TextSettings | None = None, *, native: bool = True) -> None:
        self.settings = settings or TextSettings()
        ids = word_ids(vocabulary, self.settings.language)
        self._stretches = stretches(ids, self.settings.lowercase, self.settings.language, native)

    def encode(self, texts: Iterable[Text]) -> Encoded:
        """Documents, one after the other, as far as the limits allow."""
        return self._read(texts, spans=False)[0]

    def locate(self, texts: Sequence[Text]) -> tuple[LocatedTexts, Encoded]:
        """The same, and where each word stands in its text; sentences that are given are joined with a blank."""
        encoded, (starts, ends) = self._read(texts, spans=True)
        wholes = [text if isinstance(text, str) else " ".join(text) for text in texts]
        before = np.repeat(offsets_of(np.array([*map(len, wholes)], dtype=np.int64))[:-1], encoded.lengths)
        offsets = encoded.sentence_offsets, encoded.document_offsets
        return LocatedTexts(wholes, starts - before, ends - before, *offsets), encoded

    def _read(self, texts: Iterable[Text], *, spans: bool) -> tuple[Encoded, list[Int64[np.ndarray, " words"]]]:
        """The documents; with `spans`, also the start and the end of each word, in characters of all texts."""
        ends = [0]  # of each document, in sentences
        columns: list[tuple[np.ndarray, ...]] = []
        position = 0  # of the chunk in all texts, in characters: those of the sentences of a text are those of the text
        for sentences in _chunks(map(self._sentences, texts), ends):
            if spans:
                words_of, places = self._stretches.locate(sentences)
                columns.append((*words_of, *(place + position for place in places)))
                position += sum(map(len, sentences))
            else:
                columns.append(self._stretches.encode(sentences))
        words, lengths, *found = map(np.concatenate, zip(*columns, strict=True))
        full = lengths > 0
        lengths, document_offsets = lengths[full], offsets_of(full)[ends]
        kept, counts = _within(self.settings.limits, lengths, document_offsets)
        cut = np.diff(offsets_of(lengths - kept)[document_offsets]) > 0
        if cut.any():
            number_in_sentence = np.arange(len(words)) - np.repeat(offsets_of(lengths)[:-1], lengths)
            inside = number_in_sentence < np.repeat(kept, lengths)
            words, found = words[inside], [places[inside] for places in found]
        return Encoded(words, offsets_of(kept[kept > 0]), offsets_of(counts), cut), found

    def _sentences(self, text: Text) -> list[str]:
        if isinstance(text, str):
            return split_sentences(text, self.settings.language)
        return [sentence + " " for sentence in text[:-1]] + list(text[-1:])


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


def _within(
    limits: TextLimits,
    lengths: Int64[np.ndarray, " sentences"],
    document_offsets: Int64[np.ndarray, " documents_plus_1"],
) -> tuple[Int64[np.ndarray, " sentences"], Int64[np.ndarray, " documents"]]:
    """How many words of each sentence, and how many sentences of each document, the limits leave."""
    counts = np.diff(document_offsets)
    if limits.max_sentences is not None:
        number_in_document = np.arange(len(lengths)) - np.repeat(document_offsets[:-1], counts)
        lengths = np.where(number_in_document < limits.max_sentences, lengths, 0)
        counts = np.minimum(counts, limits.max_sentences)
    if limits.max_words_per_sentence is not None:
        lengths = np.minimum(lengths, limits.max_words_per_sentence)
    return lengths, counts


def offsets_of(lengths: Integer[np.ndarray, " n"] | Bool[np.ndarray, " n"]) -> Int64[np.ndarray, " n_plus_1"]:
    """0 and the running sum: part i is flat[offsets[i] : offsets[i + 1]]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclass(eq=False)
class Document(Located):
    """With `words` in their normal form."""

    words: list[str]

    @property
    def sentences(self) -> list[list[str]]:
        """The words of each sentence."""
        return [self.words[start:stop] for start, stop in pairwise(self.sentence_offsets.tolist())]

    @property
    def sentence_spans(self) -> list[tuple[int, int]]:
        """Where each sentence stands in the text: from its first word's start to its last word's end."""
        first, last = self.sentence_offsets[:-1], self.sentence_offsets[1:] - 1
        return list(zip(self.starts[first].tolist(), self.ends[last].tolist(), strict=True))


def read_document(text: str, *, language: str = USUAL, lowercase: bool = True) -> Document:
    """Split a text into sentences and words, without limits. A blank text gives a document without words.

    Blanks and `<br>` tags are in no word; every other character is in exactly one.
    """
    words: list[str] = []
    spans: list[tuple[int, int]] = []
    offsets = [0]
    position = 0
    for sentence in split_sentences(text, language):
        for start, end in token_spans(sentence, language):
            words.append(normalise(sentence[start:end], lowercase=lowercase))
            spans.append((position + start, position + end))
        position += len(sentence)
        if len(words) > offsets[-1]:
            offsets.append(len(words))
    starts, ends = np.array(spans, dtype=np.int64).reshape(-1, 2).T
    return Document(text, starts.copy(), ends.copy(), np.array(offsets, dtype=np.int64), words)
