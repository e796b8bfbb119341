"""A look at labelled data before a model learns from it: sizes, classes, lengths, duplicates, and likely problems with
what to do about them. `emhrnn info DATA` and the first lines of `emhrnn train` show it."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus.dataset import Corpus
from emhrnn.corpus.preparation import prepare
from emhrnn.corpus.record import Columns
from emhrnn.corpus.store import Report
from emhrnn.text.language import FEWEST, LEAST, votes_of

RARE = 0.2  # of the documents that a class would have if all had the same number
FEW = 5  # documents of a class that cannot be learned
MANY, FEW_PER_CLASS = 20, 3  # more classes than MANY, with fewer documents each: the label column is probably another
SHORT = 0.1  # share of documents with one word in a text column that is probably another column
OTHER = 0.05  # share of documents in another language that is worth a warning
LOOKED_AT = 2000  # documents whose language is looked at
SHOWN_WORDS, SHOWN_NAMES = 8, 3


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """What prepared data holds. `duplicates` counts documents whose words are those of an earlier one, `conflicts` the
    texts that occur with different labels; `languages` are shares of the documents whose language was recognised, by
    ISO 639-1 code; `problems` are sentences for people."""

    report: Report
    language: str
    median_words: float
    one_word: int
    duplicates: int
    conflicts: int
    languages: dict[str, float]
    problems: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        own = ("language", "languages", "median_words", "one_word", "duplicates", "conflicts", "problems")
        return {**self.report.to_dict(), **{name: getattr(self, name) for name in own}}

    def lines(self) -> list[tuple[str, str]]:
        """Names and values for the terminal."""
        return [
            *self.report.lines(),
            ("median length", f"{self.median_words:g} words; {_counted(self.one_word, 'document')} of one word"),
            (
                "duplicates",
                f"{_counted(self.duplicates, 'document')}; {_counted(self.conflicts, 'text')} with different labels",
            ),
            ("language", f"{_told(self.languages)}; read as {self.language}"),
            *(("problem", problem) for problem in self.problems),
        ]


def look_at(path: Path, *, columns: Columns, encoding: str | None = None, progress: bool = True) -> DataSummary:
    """The summary of a file or folder, which is read once and kept in a temporary folder meanwhile.

    Raises:
        DataError: it cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="emhrnn-") as folder:
        return summarise(prepare(path, Path(folder) / "corpus", columns=columns, encoding=encoding, progress=progress))


def summarise(corpus: Corpus) -> DataSummary:
    """The summary of a corpus, or of a view of one; counts of skipped and repaired rows are of the whole."""
    first = corpus.first_equal
    again = np.flatnonzero(first != np.arange(len(corpus)))
    conflicts = _conflicts(corpus, first, again)
    one_word = int((corpus.lengths == 1).sum())
    languages = _languages(corpus)
    problems = [
        *_split_problems(corpus.report),
        *_label_problems(corpus),
        *_language_problems(corpus, languages),
        *_duplicate_problems(corpus, len(again), conflicts),
    ]
    if one_word > SHORT * len(corpus):
        share = one_word / len(corpus)
        problems.append(f"{share:.0%} of the documents have one word: check that the text column is the right one")
    return DataSummary(
        report=corpus.report,
        language=corpus.text.language,
        median_words=float(np.median(corpus.lengths)),
        one_word=one_word,
        duplicates=len(again),
        conflicts=len(conflicts),
        languages=languages,
        problems=tuple(problems),
    )


def _conflicts(corpus: Corpus, first: np.ndarray, again: np.ndarray) -> dict[int, int]:
    """For each text with different labels, its first row and a row with another label."""
    labels = corpus.labels
    if labels is None:
        return {}
    same = labels[again] == labels[first[again]]
    differ = again[~(same if labels.ndim == 1 else same.all(axis=1))]
    return dict(zip(first[differ].tolist(), differ.tolist(), strict=True))


def _split_problems(report: Report) -> list[str]:
    if len(report.splits) < 2:
        return []
    shown = ", ".join(f"{name!r} ({count:,})" for name, count in list(report.splits.items())[:SHOWN_NAMES])
    more = f" and {len(report.splits) - SHOWN_NAMES:,} more" if len(report.splits) > SHOWN_NAMES else ""
    return [
        f"rows of all splits are used: {shown}{more} in the column {report.columns['split']!r}; --split and "
        "--valid-split choose rows to train on and to validate, and leave the others for `evaluate`"
    ]


def _label_problems(corpus: Corpus) -> list[str]:
    if corpus.labels is None:
        return []
    counts = dict(zip(corpus.classes, corpus.class_counts.tolist(), strict=True))
    documents = len(corpus)
    if not corpus.multi_label and len(counts) > MANY and documents < FEW_PER_CLASS * len(counts):
        return [f"{documents:,} documents have {len(counts):,} classes: check that the label column is the right one"]
    problems = []
    few = [name for name, count in counts.items() if count < FEW]
    rare = [name for name, count in counts.items() if FEW <= count < RARE * documents / len(counts)]
    if few:
        problems.append(
            f"{_named(few, counts, documents)}: a model cannot learn from fewer than {FEW} documents; add more, or "
            "merge classes"
        )
    if rare:
        remedy = "" if corpus.multi_label else "use --set training.class_weight=balanced, and "
        problems.append(f"{_named(rare, counts, documents)}: {remedy}read macro-F1 instead of accuracy")
    return problems


def _named(names: Sequence[str], counts: dict[str, int], documents: int) -> str:
    shown = ", ".join(f"{name!r} ({counts[name]:,}, {counts[name] / documents:.1%})" for name in names[:SHOWN_NAMES])
    more = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
    return f"the class {shown} is rare" if len(names) == 1 else f"the classes {shown}{more} are rare"


def _languages(corpus: Corpus) -> dict[str, float]:
    """Shares of the recognised documents, of LOOKED_AT from all over the corpus; the most frequent language first."""
    batch = corpus.batch(corpus.spread(LOOKED_AT))
    words, number = np.unique(batch.words, return_inverse=True)
    votes = [votes_of(word.lower()) for word in corpus.vocabulary.decode(words)]
    names = sorted({language for some in votes for language in some})
    if not names:
        return {}
    table = np.array([[some.get(name, 0.0) for name in names] for some in votes], dtype=np.float32)
    sums = np.add.reduceat(table[number], batch.word_offsets[:-1])  # (documents, languages)
    clear = sums.max(axis=1) >= np.maximum(LEAST * batch.document_lengths, FEWEST)
    counts = np.bincount(sums[clear].argmax(axis=1), minlength=len(names))
    order = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i]]
    return {names[i]: float(counts[i] / counts.sum()) for i in order}


def _language_problems(corpus: Corpus, languages: dict[str, float]) -> list[str]:
    others = {name: share for name, share in languages.items() if name != corpus.text.language and share >= OTHER}
    if not others:
        return []
    return [
        f"the texts are read as {corpus.text.language}, and some are of another language ({_told(others)}): train a "
        "model for each language, or set data.language"
    ]


def _told(languages: dict[str, float]) -> str:
    shown = ", ".join(f"{name} {100 * share:.0f} %" for name, share in list(languages.items())[:SHOWN_NAMES])
    return shown or "not recognised"


def _duplicate_problems(corpus: Corpus, duplicates: int, conflicts: dict[int, int]) -> list[str]:
    problems = []
    if duplicates:
        problems.append(
            f"{_counted(duplicates, 'document')} repeating the text of another; a random split keeps equal texts "
            "together, and test data should not hold them"
        )
    if conflicts:
        row, other = next(iter(conflicts.items()))
        batch = corpus.batch(np.array([row]))
        words = " ".join(corpus.vocabulary.decode(batch.words[:SHOWN_WORDS]))
        more = " ..." if batch.n_words > SHOWN_WORDS else ""
        labels = " and ".join(_label_of(corpus, one) for one in (row, other))
        problems.append(
            f"{_counted(len(conflicts), 'text')} with different labels, for example {words + more!r} ({labels}); "
            "correct the labels"
        )
    return problems


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def _label_of(corpus: Corpus, row: int) -> str:
    assert corpus.labels is not None
    label = corpus.labels[row]
    return "|".join(np.array(corpus.classes, dtype=object)[label > 0]) if label.ndim else corpus.classes[int(label)]
