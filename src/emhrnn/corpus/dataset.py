"""A prepared corpus: documents as word ids, memory-mapped, with their labels, vocabulary, classes and report."""

from collections.abc import Container, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.assembly import Recipe, first_pass, second_pass
from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import NO_WORDS, UNKNOWN, has_words
from emhrnn.corpus.record import Record, Where, clean_label, clean_text, clean_weight
from emhrnn.corpus.store import DATA, Contents, Report, Store, read_manifest
from emhrnn.errors import ConfigError, DataError
from emhrnn.extras import pyarrow as pa
from emhrnn.shapes import Float32, Int32, Int64
from emhrnn.text import TextSettings, Vocabulary
from emhrnn.text.language import AUTO
from emhrnn.text.vocabulary import encoded_words

Rows = Int64[np.ndarray, " rows"]
FEWEST_TEXTS = 20  # different ones, that are held out as a whole
MOST_FRACTIONS = 50  # grades such as 3.5 are classes


class Corpus:
    """Documents by row number, 0 to len - 1. `select` and `split` give views of the same memory.

    corpus = Corpus.open("reviews.corpus")
    train, valid = corpus.split(0.1, np.random.default_rng(0))
    batch = train.batch(np.array([3, 1, 4]))
    """

    def __init__(self, store: Store, contents: Contents, *, path: Path | None = None, rows: Rows | None = None) -> None:
        self._store = store
        self._contents = contents
        self.path = path
        self._rows = np.arange(len(store)) if rows is None else rows
        self.vocabulary = contents.vocabulary
        self._word_table: Int32[np.ndarray, " words"] | None = None
        self.users, self.products = contents.users, contents.products
        """User and product names in the order of their ids; empty where the source has none."""

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = True) -> "Corpus":
        """A corpus that `prepare` wrote. Sizes are always checked; `verify` reads all data once for its checksum.

        Raises:
            CheckpointError: it is missing, damaged, or of another version.
        """
        path = Path(path)
        contents = read_manifest(path, verify=verify)
        return cls(Store.open(path / DATA), contents, path=path)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str],
        labels: Sequence[Any] | None = None,
        *,
        weights: Sequence[Any] | None = None,
        vocabulary: Vocabulary | None = None,
        min_count: int = 1,
        max_words: int | None = None,
        known: Container[str] | None = None,
        classes: Sequence[str] | None = None,
        text: TextSettings | None = None,
    ) -> "Corpus":
        """A corpus in memory with one row per text, to train on.

        Labels are of any kind that a file can hold; a list per text makes the corpus multi-label. A text of weight 2
        counts in training as if it were there twice. The other arguments are those of `prepare`.

        Raises:
            DataError: a text has no words or no label, or there are not as many labels or weights as texts.
        """
        if labels is not None and len(labels) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(labels)} labels; give one label per text")
        if weights is not None and len(weights) != len(texts):
            raise DataError(f"{len(texts)} texts and {len(weights)} weights; give one weight per text")
        recipe = Recipe(
            vocabulary=vocabulary,
            min_count=min_count,
            max_words=max_words,
            known=known,
            classes=classes,
            labelled=labels is not None,
            multi_label=False,  # a string is one label, whatever it holds
            text=text or TextSettings(language=AUTO),
        )
        first, second = pa.BufferOutputStream(), pa.BufferOutputStream()
        assembly = first_pass(records_of(texts, labels, weights), recipe, first, "the list of texts")
        contents = second_pass(assembly, pa.ipc.open_file(first.getvalue()), second)
        return cls(Store(second.getvalue()), contents)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names in the order of their ids."""
        return self._contents.classes

    @property
    def text(self) -> TextSettings:
        """How the text was read; new text for a model of this corpus must be read the same way."""
        return self._contents.text

    @property
    def report(self) -> Report:
        """Counts of the whole prepared corpus, also for a view of it."""
        return self._contents.report

    @property
    def labelled(self) -> bool:
        return self._store.labelled

    @property
    def multi_label(self) -> bool:
        return self._store.multi_label

    @cached_property
    def lengths(self) -> Int64[np.ndarray, " documents"]:
        """Words of each document."""
        lengths: np.ndarray = self._store.lengths[self._rows]
        return lengths

    @property
    def length_range(self) -> tuple[int, int]:
        """Fewest and most words of a document."""
        return int(self.lengths.min()), int(self.lengths.max())

    @property
    def sentence_counts(self) -> Int64[np.ndarray, " documents"]:
        """Sentences of each document."""
        counts: np.ndarray = self._store.sentence_counts[self._rows]
        return counts

    @cached_property
    def labels(self) -> Int64[np.ndarray, " documents"] | Float32[np.ndarray, "documents classes"] | None:
        """Class ids; for multi-label data 0 and 1 per class; None without labels."""
        return self._store.labels(self._rows, len(self.classes))

    @property
    def has_spans(self) -> bool:
        """Whether the data had a column of spans that people marked."""
        return self._store.marked is not None

    @property
    def weights(self) -> Float32[np.ndarray, " documents"] | None:
        """How often each document counts in training; None where all count 1."""
        return None if self._store.weights is None else self._store.weights[self._rows]

    @property
    def class_counts(self) -> Int64[np.ndarray, " classes"]:
        """Documents of each class, in this view."""
        if self.labels is None:
            raise DataError("the corpus has no labels; prepare it with a label column")
        counts: np.ndarray
        if self.labels.ndim == 2:
            counts = np.count_nonzero(self.labels, axis=0).astype(np.int64)
        else:
            counts = np.bincount(self.labels, minlength=len(self.classes))
        return counts

    def frequent_names(self, least: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The users and the products of at least so many documents of this view."""
        return (
            _frequent(self.users, self._store.users, self._user_table, self._rows, least),
            _frequent(self.products, self._store.products, self._product_table, self._rows, least),
        )

    def batch(self, rows: Rows) -> Batch:
        """Some documents, in the order given. `rows` are row numbers of this view, and are the batch's `rows`."""
        batch = self._store.batch(self._rows[rows], rows, len(self.classes), self._word_table)
        if self._user_table is None and self._product_table is None:
            return batch
        return replace(
            batch, users=_renamed(batch.users, self._user_table), products=_renamed(batch.products, self._product_table)
        )

    def ids(self, rows: Rows | None = None) -> list[str]:
        """The documents' ids in their source; where it has none, the row number there, counted from 0."""
        return self._store.ids(self._rows if rows is None else self._rows[rows])

    def source_rows(self, rows: Rows | None = None) -> Int64[np.ndarray, " rows"]:
        """The documents' row numbers in their source, counted from 0; rows that were skipped count too."""
        return self._store.source_rows(self._rows if rows is None else self._rows[rows])

    def select(self, rows: Rows) -> "Corpus":
        """A view of some documents, in the order given."""
        return self._view(self._rows[rows])

    def spread(self, documents: int) -> Int64[np.ndarray, " rows"]:
        """Rows of so many documents, or of all, from all over the corpus."""
        return np.unique(np.linspace(0, len(self) - 1, documents).astype(np.int64))

    @property
    def first_equal(self) -> Int64[np.ndarray, " documents"]:
        """For each document the first one of this view with the same words in the same order."""
        _, first, number = np.unique(self._store.first_equal[self._rows], return_index=True, return_inverse=True)
        rows: np.ndarray = first[number]
        return rows

    def whole(self) -> "Corpus":
        """All documents of the prepared corpus that this is a view of."""
        return self._view(np.arange(len(self._store)))

    def split(self, fraction: float, generator: np.random.Generator) -> tuple["Corpus", "Corpus"]:
        """The rest and a held-out `fraction`, both with the same mix of classes. Documents with the same words stay
        together, because a model has learned the label of a held-out text that it was trained on. Fewer than
        FEWEST_TEXTS different texts are too few to do without any of them, and are split document by document.

        Raises:
            DataError: there are too few documents, or too few different ones.
        """
        if self.labels is None or self.labels.ndim == 2:  # sets of labels are too many to keep apart
            groups = np.zeros(len(self), dtype=np.int64)
        else:
            groups = self.labels
        first = self.first_equal
        distinct = np.flatnonzero(first == np.arange(len(self)))
        if len(distinct) < FEWEST_TEXTS:
            first = distinct = np.arange(len(self))
        held_out = np.zeros(len(self), dtype=bool)
        held_out[distinct[stratified_split(groups[distinct], fraction, generator)[1]]] = True
        held_out = held_out[first]
        lost = np.setdiff1d(groups, groups[~held_out])  # classes of which all texts are also of other classes
        held_out &= ~np.isin(first, first[np.isin(groups, lost)])
        if not held_out.any():
            raise DataError(f"the texts of {len(lost)} classes are all of other classes, too; correct the labels")
        return self.select(np.flatnonzero(~held_out)), self.select(np.flatnonzero(held_out))

    def remap(
        self, vocabulary: Vocabulary, *, users: tuple[str, ...] | None = None, products: tuple[str, ...] | None = None
    ) -> "Corpus":
        """The same documents in the ids of another vocabulary, and of other users and products where they are given.
        What is `<unk>` here stays so there; a user that is not given becomes -1."""
        view = self._view(self._rows)
        view.vocabulary = vocabulary
        view._word_table = encoded_words(self._contents.vocabulary.words, vocabulary, self.text.language)
        view.users = self.users if users is None else users
        view.products = self.products if products is None else products
        return view

    def check_trainable(self) -> None:
        """Raise a DataError unless there are labels of two classes or more, on documents whose weight is not 0; or if
        they are a quantity, not classes."""
        used = self if self.weights is None else self.select(np.flatnonzero(self.weights))
        if not len(used):
            raise DataError("all documents have the weight 0; give at least two classes a larger one")
        counts = used.class_counts
        if (counts > 0).sum() < 2:
            only = next((repr(name) for name, count in zip(self.classes, counts, strict=True) if count), "none")
            whose = "the only label is" if self.multi_label else f"all {len(used)} documents have the class"
            raise DataError(f"{whose} {only}; training needs at least two classes, check the label column")
        fractions = _fractions(self.classes)
        if len(fractions) > MOST_FRACTIONS:
            raise DataError(
                f"the labels are {len(self.classes):,} different numbers such as {fractions[0]} and {fractions[-1]}, "
                "which is a quantity, not classes; round it to a few grades, check the label column, or write a letter "
                "before them if they are names"
            )

    def _view(self, rows: Rows) -> "Corpus":
        view = Corpus(self._store, self._contents, path=self.path, rows=rows)
        view.vocabulary, view._word_table = self.vocabulary, self._word_table
        view.users, view.products = self.users, self.products
        return view

    @cached_property
    def _user_table(self) -> Int64[np.ndarray, " old_plus_1"] | None:
        return _id_table(self._contents.users, self.users)

    @cached_property
    def _product_table(self) -> Int64[np.ndarray, " old_plus_1"] | None:
        return _id_table(self._contents.products, self.products)


def _fractions(classes: Sequence[str]) -> list[str]:
    """The classes that are no whole numbers, where all are numbers."""
    try:
        return [name for name in classes if not float(name).is_integer()]
    except ValueError:
        return []


def _id_table(old: Sequence[str], new: Sequence[str]) -> Int64[np.ndarray, " old_plus_1"] | None:
    """The new id of each old one, and at the end, where -1 finds it, that of unknown ones; None where all stay."""
    if old == new:
        return None
    ids = {name: index for index, name in enumerate(new)}
    return np.array([*(ids.get(name, UNKNOWN) for name in old), UNKNOWN], dtype=np.int64)


def _renamed(
    ids: Int64[np.ndarray, " documents"] | None, table: Int64[np.ndarray, " old_plus_1"] | None
) -> Int64[np.ndarray, " documents"] | None:
    return ids if ids is None or table is None else table[ids]


def _frequent(
    names: tuple[str, ...],
    ids: Int32[np.ndarray, " stored"] | None,
    table: Int64[np.ndarray, " old_plus_1"] | None,
    rows: Rows,
    least: int,
) -> tuple[str, ...]:
    """Those of at least `least` rows; `ids` are of all stored documents."""
    seen = _renamed(None if ids is None else ids[rows].astype(np.int64), table)
    if seen is None:
        return ()
    counts = np.bincount(seen[seen != UNKNOWN], minlength=len(names))
    return tuple(name for name, count in zip(names, counts, strict=True) if count >= least)


def records_of(
    texts: Sequence[Any], labels: Sequence[Any] | None = None, weights: Sequence[Any] | None = None
) -> list[Record]:
    """Texts in memory as a reader would yield them."""
    records = []
    values = [None] * len(texts) if labels is None else labels
    for number, (text, value) in enumerate(zip(texts, values, strict=True), start=1):
        where = Where("the texts", number)
        if not isinstance(text, str):
            raise DataError(f"{where} is a {type(text).__name__}; give strings")
        if not has_words(text):
            raise DataError(f"text {number} {NO_WORDS}")
        label = clean_label(value)
        if label is None and labels is not None:
            raise DataError(f"{where} has no label ({value!r}); give every text a label")
        clean, repairs = clean_text(text)
        weight = None if weights is None else clean_weight(weights[number - 1], where)
        records.append(Record(clean, label, where, repairs=repairs, weight=weight))
    return records


def stratified_split(
    groups: Int64[np.ndarray, " documents"], fraction: float, generator: np.random.Generator
) -> tuple[Int64[np.ndarray, " rest"], Int64[np.ndarray, " held_out"]]:
    """Row numbers of the larger part and of the held-out part, each in rising order.

    The held-out part is `fraction` of all rows, and of each group up to one row. A group never leaves the larger part
    whole, so that no class is there for validation alone.
    """
    if not 0 < fraction < 1:
        raise ConfigError(f"a part of {fraction} cannot be split off; give a number between 0 and 1")
    order = generator.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    _, sizes = np.unique(groups, return_counts=True)
    ends = np.cumsum(sizes)
    # Rounding the running total, not each group, keeps the overall share exact even for many small groups.
    taken = np.diff(np.rint(ends * fraction).astype(np.int64), prepend=0)
    taken = np.minimum(taken, sizes - 1)
    place = np.arange(len(groups)) - np.repeat(ends - sizes, sizes)
    held_out = np.zeros(len(groups), dtype=bool)
    held_out[order] = place < np.repeat(taken, sizes)
    if len(sizes) == len(groups) > 2:
        raise DataError(f"each of the {len(groups)} documents has a label of its own; is it the right label column?")
    if not held_out.any():
        raise DataError(
            f"{len(groups)} documents are too few to split off {fraction:.0%} for validation; give more documents"
        )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)
