"""From records to a corpus, on disk or in memory: the two passes and the decisions between them."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int64

from emhrnn.corpus.assembly import Assembly, renumber
from emhrnn.corpus.encode import NameTable
from emhrnn.corpus.encoding import GrowingVocabulary, encode_chunks
from emhrnn.corpus.record import Record
from emhrnn.corpus.report import Report
from emhrnn.errors import DataError
from emhrnn.text import TextSettings, Vocabulary


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How records become a corpus; the arguments of `prepare`, which explains them."""

    vocabulary: Vocabulary | None = None
    min_count: int = 1
    max_words: int | None = None
    known: Container[str] | None = None
    classes: Sequence[str] | None = None
    users: Sequence[str] | None = None
    products: Sequence[str] | None = None
    labelled: bool = True
    text: TextSettings = field(default_factory=TextSettings)
    strict: bool = False
    workers: int = 1


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a corpus knows besides its documents."""

    vocabulary: Vocabulary
    classes: tuple[str, ...]
    users: tuple[str, ...]
    products: tuple[str, ...]
    text: TextSettings
    report: Report


def first_pass(records: Iterable[Record], recipe: Recipe, sink: Any, origin: str) -> tuple[Assembly, GrowingVocabulary]:
    """Tokenises all records and writes them with ids by first appearance. `origin` names them in an error."""
    words = GrowingVocabulary()
    assembly = Assembly(
        sink,
        labelled=recipe.labelled,
        classes=NameTable(recipe.classes),
        users=NameTable(recipe.users),
        products=NameTable(recipe.products),
        strict=recipe.strict,
    )
    for chunk, encoded in encode_chunks(assembly.chunks(records), recipe.text, words, recipe.workers):
        assembly.add(chunk, encoded)
    assembly.close()
    if not assembly.documents:
        skipped = "".join(f", {count} with {reason}" for reason, count in assembly.skipped.items())
        raise DataError(
            f"{origin} has no usable document ({assembly.seen} rows read{skipped}); give rows with text and label"
        )
    return assembly, words


def second_pass(assembly: Assembly, words: GrowingVocabulary, recipe: Recipe, reader: Any, sink: Any) -> Contents:
    """Decides the vocabulary and the order of the classes, and writes the documents with their final ids."""
    counts = assembly.word_counts(len(words))
    vocabulary = recipe.vocabulary or choose_vocabulary(
        words.words, counts, min_count=recipe.min_count, max_words=recipe.max_words, known=recipe.known
    )
    word_table = vocabulary.encode(words.words)
    classes = list(recipe.classes) if recipe.classes is not None else in_natural_order(assembly.classes.names)
    class_ids = {name: index for index, name in enumerate(classes)}
    class_table = np.array([class_ids[name] for name in assembly.classes.names], dtype=np.int32)
    drop = [name for name, table in (("user", assembly.users), ("product", assembly.products)) if not len(table)]
    renumber(reader, sink, words=word_table, classes=class_table, drop=drop)
    class_counts = {name: assembly.class_counts[old] for old, name in enumerate(assembly.classes.names)}
    report = Report(
        documents=assembly.documents,
        sentences=assembly.sentences,
        words=int(counts.sum()),
        longest_document=assembly.longest_document,
        longest_sentence=assembly.longest_sentence,
        vocabulary=len(vocabulary),
        unknown_words=int(counts[word_table == 0].sum()),
        classes={name: class_counts[name] for name in classes},
        multi_label=bool(assembly.multi_label),
        users=len(assembly.users),
        products=len(assembly.products),
        capped=assembly.capped,
        limits={name: value for name, value in asdict(recipe.text.limits).items() if value is not None},
        skipped=dict(assembly.skipped),
        skipped_first=assembly.skipped_first,
        repaired=dict(assembly.repaired),
    )
    return Contents(
        vocabulary=vocabulary,
        classes=tuple(classes),
        users=tuple(assembly.users.names),
        products=tuple(assembly.products.names),
        text=recipe.text,
        report=report,
    )


def choose_vocabulary(
    words: Sequence[str],
    counts: Int64[np.ndarray, " words"],
    *,
    min_count: int,
    max_words: int | None,
    known: Container[str] | None,
) -> Vocabulary:
    """The words that are frequent enough; those in `known` are, however rare."""
    counted = dict(zip(words, counts.tolist(), strict=True))
    if known is not None:
        for word, count in counted.items():
            if count < min_count and word in known:
                counted[word] = min_count
    return Vocabulary.from_counts(counted, min_count=min_count, max_size=max_words)


def in_natural_order(names: Sequence[str]) -> list[str]:
    """Numbers by value (2 before 10) when all names are numbers, else by the alphabet."""
    alphabetical = sorted(names)
    try:
        return sorted(alphabetical, key=float)
    except ValueError:
        return alphabetical
