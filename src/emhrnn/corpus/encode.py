"""The one way from texts to a `Batch`, for Python, the command line, REST and scoring. A training corpus is written in
chunks of the same `WordEncoder`, so that a model reads new text as it read its training data.

Three rules hold wherever text is read (docs/data.md):

- what cannot be stored is repaired (`clean_text`);
- caps apply: of a document, the first `max_sentences` sentences and of each the first `max_words_per_sentence` words
  are read, whether it is predicted or explained, so that both give the same probabilities;
- a text without words is refused (`DataError`). Who reads files, where one bad row must not end the work, asks for the
  rows that have words (`encode_usable`) and reports the others.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch, offsets_of
from emhrnn.corpus.record import clean_name, clean_text
from emhrnn.errors import DataError
from emhrnn.shapes import Int64
from emhrnn.text import Encoded, LocatedTexts, Text, TextSettings, Vocabulary, WordEncoder, split_sentences

UNKNOWN = -1
NO_WORDS = "has no words; give a text with at least one word"

Texts = Iterable[Any]  # of strings: a list, an array, a column of a table (pandas, polars, arrow, datasets)
Names = Sequence[str | None] | None  # one for each text


class NameTable:
    """Ids of classes, users or products. Each new name gets the next id; a table made from names that are given knows
    those and no others."""

    def __init__(self, given: Sequence[str] | None = None) -> None:
        self.fixed = given is not None
        self._ids = {name: index for index, name in enumerate(given or ())}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def names(self) -> list[str]:
        return list(self._ids)

    def id_of(self, name: str | None) -> int:
        """The name's id; -1 for no name, and for a new one where the names are given."""
        if name is None:
            return UNKNOWN
        if self.fixed:
            return self._ids.get(name, UNKNOWN)
        return self._ids.setdefault(name, len(self._ids))


class TextEncoder:
    """Reads texts in the words of one model, and in its users and products where it knows any. Keep it: it is fast once
    it has seen the common words."""

    def __init__(
        self,
        vocabulary: Vocabulary,
        settings: TextSettings | None = None,
        *,
        users: Sequence[str] = (),
        products: Sequence[str] = (),
    ) -> None:
        self.words = WordEncoder(vocabulary, settings)
        self._names = {"users": users, "products": products}

    def encode(self, texts: Sequence[Text], *, users: Names = None, products: Names = None) -> Batch:
        """All texts as one batch, in order. A user or product that is None, or that the model does not know, is -1.

        Raises:
            DataError: a text has no words, or there are not as many names as texts.
        """
        encoded = self.words.encode(_cleaned(texts))
        _refuse_empty(encoded.lengths)
        return self._batch(encoded, np.arange(len(encoded)), users, products)

    def encode_usable(self, texts: Sequence[Text], *, users: Names = None, products: Names = None) -> Batch | None:
        """The texts that have words, `rows` of the batch being their numbers; None where no text has any."""
        encoded = self.words.encode(_cleaned(texts))
        rows = np.flatnonzero(encoded.lengths)
        return self._batch(encoded, rows, users, products) if len(rows) else None

    def locate(
        self, texts: Sequence[Text], *, users: Names = None, products: Names = None
    ) -> tuple[LocatedTexts, Batch]:
        """The same batch, and the places of its words in the texts, for explanations.

        Raises:
            DataError: a text has no words, or there are not as many names as texts.
        """
        documents, encoded = self.words.locate(_cleaned(texts))
        _refuse_empty(encoded.lengths)
        return documents, self._batch(encoded, np.arange(len(encoded)), users, products)

    def _batch(self, encoded: Encoded, rows: Int64[np.ndarray, " rows"], users: Names, products: Names) -> Batch:
        return Batch(
            words=encoded.words.astype(np.int64),
            sentence_offsets=encoded.sentence_offsets,
            document_offsets=offsets_of(np.diff(encoded.document_offsets)[rows]),  # no words: no sentence
            rows=rows,
            users=self._ids("users", users, rows, len(encoded)),
            products=self._ids("products", products, rows, len(encoded)),
        )

    def _ids(
        self, kind: str, given: Names, rows: Int64[np.ndarray, " rows"], texts: int
    ) -> Int64[np.ndarray, " rows"] | None:
        """None for a model that knows no names of the kind. Raises a DataError unless there is one name for each text,
        or none is given at all."""
        if given is not None and (isinstance(given, str) or len(given) != texts):
            told = "one string" if isinstance(given, str) else f"{len(given)}"
            raise DataError(f"{texts} texts and {told} for {kind}; give one for each text, None where unknown")
        if not self._names[kind]:
            return None
        if given is None:
            return np.full(len(rows), UNKNOWN, dtype=np.int64)
        table = self._tables[kind]
        return np.array([table.id_of(clean_name(given[row])) for row in rows.tolist()], dtype=np.int64)

    @cached_property
    def _tables(self) -> dict[str, NameTable]:
        return {kind: NameTable(names) for kind, names in self._names.items()}


def has_words(text: str) -> bool:
    """Whether a model finds a word in the text: blanks, NUL and `<br>` are none."""
    text, _ = clean_text(text)
    pieces = split_sentences(text) if "<" in text else [text]
    return any(piece and not piece.isspace() for piece in pieces)


def checked_texts(texts: Any) -> list[str]:
    """Strings, from any sequence of them: a list, an array, a column of a table. To go through a table would be to go
    through the names of its columns."""
    if isinstance(texts, str):
        raise DataError("one string was given; give a list of texts, for example [text]")
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or hasattr(texts, "column_names"):
        raise DataError("a table was given; give its column of texts, for example table['text']")
    found = listed(texts)
    if found is None:
        raise DataError(f"a {type(texts).__name__} was given; give a list of texts")
    for number, text in enumerate(found, start=1):
        if not isinstance(text, str):
            raise DataError(f"text {number} is a {type(text).__name__}; give one string per document")
    return found


def listed(values: Any) -> list[Any] | None:
    """What a sequence holds, in Python's own types; None for what is none. A set has no order, by which texts and
    labels belong together, and the letters of a string are nobody's labels."""
    if not isinstance(values, Iterable) or isinstance(values, (str, bytes, bytearray, Set, Mapping)):
        return None
    for ways in ("tolist", "to_pylist"):  # of arrays and pandas, of arrow
        if hasattr(values, ways):
            found = getattr(values, ways)()
            return found if isinstance(found, list) else None  # an array of no dimension is one value
    return list(values)


def _cleaned(texts: Sequence[Text]) -> list[Text]:
    """Sentences that are given come from a reader, which has cleaned them."""
    return [clean_text(text)[0] if isinstance(text, str) else text for text in texts]


def _refuse_empty(lengths: Int64[np.ndarray, " texts"]) -> None:
    if not lengths.all():
        raise DataError(f"text {int(np.argmin(lengths > 0)) + 1} {NO_WORDS}")
