"""Have the documents changed since training? Words and labels of new documents beside those of the training data.

    words    Jensen-Shannon divergence, in bits, of the shares of documents that have each word: 0 the same, 1 nothing
             in common. Words that are not in the vocabulary count as one word; of many words, the commonest count alone
    labels   PSI = sum over classes of (new - old) * ln(new / old) of the share of each class: the mean probability
             on new documents beside the share in the training data. Usual limits: 0.1 look, 0.25 act

A part of every divergence is chance: so many documents drawn again from the training data would have it, too. What is
shown as chance is its 99 % quantile over draws, and only what is above both the limit and chance is drift.
"""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from emhrnn.corpus import Source
from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.layers.phrases import PhraseIndex
from emhrnn.shapes import Float, Float64, Int64
from emhrnn.training.run import Run

WORDS_LIMIT, LABELS_LIMIT = 0.05, 0.1
COMMON = 1000  # words that count alone; the others count together
FEWEST, MOST, ROWS = 30, 20_000, 500  # new documents: fewest, most that are read, and how many at once
DRAWS, LISTED = 50, 10
LEAST = 1e-4  # share that stands for none


@dataclass(frozen=True)
class WordChange:
    """The share of documents with a word, in training and now, and its part in the divergence."""

    word: str
    before: float
    now: float
    bits: float


@dataclass(frozen=True, kw_only=True)
class DriftReport:
    """What was compared; `words` is None where the run does not know how frequent its words were."""

    documents: int
    unknown: float  # share of new words that are not in the vocabulary
    words: float | None
    words_by_chance: float | None
    changed: tuple[WordChange, ...]
    labels: float | None
    labels_by_chance: float | None
    classes: dict[str, tuple[float, float]]  # share before and now

    @property
    def drifted(self) -> tuple[str, ...]:
        """Which of `words` and `labels` have drifted."""
        found = {"words": (self.words, WORDS_LIMIT, self.words_by_chance)}
        found["labels"] = (self.labels, LABELS_LIMIT, self.labels_by_chance)
        return tuple(
            name for name, (value, limit, chance) in found.items() if value and value > max(limit, chance or 0)
        )

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "drifted": self.drifted}


class Watch:
    """Counts words and predicted labels of documents as they come; `report` compares them with the training data that
    the run describes. With a `window`, counts are halved whenever twice as many documents have come, so that old ones
    fade. Another thread may ask for the report."""

    def __init__(self, run: Run, description: dict[str, Any], *, window: int | None = None) -> None:
        self.run, self.description, self.window = run, description, window
        self.before = training_words(run)
        self.documents = self.words = self.unknown = 0
        self.seen = np.zeros(len(run.vocabulary), dtype=np.int64)  # documents with the word
        self.shares = np.zeros(len(run.classes))  # sums of probabilities
        self._lock = threading.Lock()

    def add(self, batch: Batch, probabilities: Float[np.ndarray, "documents classes"]) -> None:
        """Count documents and what was predicted for them."""
        with self._lock:
            self.documents += batch.n_documents
            self.words += batch.n_words
            self.unknown += int((batch.words == 0).sum())
            self.seen += documents_with(batch, len(self.seen))
            self.shares += probabilities.sum(axis=0)
            if self.window and self.documents >= 2 * self.window:
                self.documents, self.words, self.unknown = self.documents // 2, self.words // 2, self.unknown // 2
                self.seen, self.shares = self.seen // 2, self.shares / 2

    def report(self) -> DriftReport | None:
        """What was found; None while there are fewer than FEWEST documents."""
        with self._lock:
            documents, unknown = self.documents, self.unknown / max(self.words, 1)
            seen, shares = self.seen / max(documents, 1), self.shares / max(documents, 1)
        if documents < FEWEST:
            return None
        generator = np.random.default_rng(0)
        report: dict[str, Any] = {"words": None, "words_by_chance": None, "changed": ()}
        if self.before is not None:
            report = _words(self.run, self.before, seen, documents, generator)
        report |= _labels(self.run, self.description, shares, documents, generator)
        return DriftReport(documents=documents, unknown=unknown, **report)


def drift(run: Run, description: dict[str, Any], source: Source) -> DriftReport:
    """Compare new documents, labelled or not, with the training data that a run describes.

    Raises:
        DataError: there are too few documents.
    """
    watch = Watch(run, description)
    with closing(iter(source)) as records:
        usable = islice((record.text for record in records if record.fault is None and record.text.strip()), MOST)
        while texts := list(islice(usable, ROWS)):
            if (batch := run.encoder.encode_usable(texts)) is not None:
                watch.add(batch, run.predict(batch).probabilities)
    report = watch.report()
    if report is None:
        raise DataError(f"{source} has {watch.documents} documents with words; drift needs {FEWEST} or more to be seen")
    return report


def documents_with(batch: Batch, vocabulary: int) -> Int64[np.ndarray, " vocabulary"]:
    """How many documents have each word."""
    document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
    pairs = np.unique(document * vocabulary + batch.words)
    return np.bincount(pairs % vocabulary, minlength=vocabulary)


def training_words(run: Run) -> Float64[np.ndarray, " vocabulary"] | None:
    """The share of training documents with each word, as an evidence model has counted it; None for other models, or
    where it counts no single words."""
    arrays = getattr(run.model, "arrays", {})
    if "ngrams.documents" not in arrays or not len(arrays["ngrams.keys"]):
        return None
    words = np.arange(len(run.vocabulary))
    offsets = np.arange(len(words) + 1)
    each = Batch(words, sentence_offsets=offsets, document_offsets=offsets, rows=words)  # a document of one word each
    rows = PhraseIndex(arrays["ngrams.keys"]).rows(each, 1)[:, 0]
    total = float(arrays["ngrams.class_documents"].sum())
    counts = np.where(rows >= 0, arrays["ngrams.documents"][np.maximum(rows, 0)], 0)
    return None if total <= 0 or not counts.any() else np.minimum(counts.astype(np.float64) / total, 1.0)


def _words(
    run: Run,
    before: Float64[np.ndarray, " vocabulary"],
    now: Float64[np.ndarray, " vocabulary"],
    documents: int,
    generator: np.random.Generator,
) -> dict[str, Any]:
    common = np.argsort(-(before + now), kind="stable")
    common = common[(before[common] > 0)][:COMMON]  # a word without a count was rare
    drawn = [
        divergence(before[common], generator.binomial(documents, before[common]) / documents).sum()
        for _ in range(DRAWS)
    ]
    bits = divergence(before[common], now[common])
    strongest = np.argsort(-bits, kind="stable")[:LISTED].tolist()
    changed = tuple(
        WordChange(run.vocabulary.words[common[k]], float(before[common[k]]), float(now[common[k]]), float(bits[k]))
        for k in strongest
    )
    return {
        "words": float(bits.sum()), "words_by_chance": float(np.quantile(drawn, 0.99)), "changed": changed,
    }  # fmt: skip


def divergence(one: Float64[np.ndarray, " n"], other: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """What each entry adds to the Jensen-Shannon divergence of two lists of counts or shares, in bits."""
    p, q = one / max(one.sum(), LEAST), other / max(other.sum(), LEAST)
    m = np.maximum((p + q) / 2, np.finfo(np.float64).tiny)
    parts: np.ndarray = sum(x * np.log2(np.where(x > 0, x / m, 1)) for x in (p, q)) / 2
    return parts


def stability(before: Float64[np.ndarray, " n"], now: Float64[np.ndarray, " n"]) -> float:
    """The population stability index of two lists of shares."""
    one, other = np.maximum(before, LEAST), np.maximum(now, LEAST)
    return float(((other - one) * np.log(other / one)).sum())


def _labels(
    run: Run,
    description: dict[str, Any],
    now: Float64[np.ndarray, " classes"],
    documents: int,
    generator: np.random.Generator,
) -> dict[str, Any]:
    counts = description.get("data", {}).get("train", {}).get("classes", {})
    before = np.array([counts.get(name, 0) for name in run.classes], dtype=np.float64)
    if not before.any():
        return {"labels": None, "labels_by_chance": None, "classes": {}}
    draw: Callable[[], np.ndarray]
    if run.multi_label:
        before = before / description["data"]["train"]["documents"]
        draw = lambda: generator.binomial(documents, np.minimum(before, 1)) / documents  # noqa: E731
    else:
        before = before / before.sum()
        draw = lambda: generator.multinomial(documents, before) / documents  # noqa: E731
    chance = float(np.quantile([stability(before, draw()) for _ in range(DRAWS)], 0.99))
    pairs = zip(run.classes, zip(before.tolist(), now.tolist(), strict=True), strict=True)
    return {"labels": stability(before, now), "labels_by_chance": chance, "classes": dict(pairs)}
