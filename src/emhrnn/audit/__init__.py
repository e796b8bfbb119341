"""Find rows to look at in labelled data: likely label errors, near-duplicates, outliers, classes that look alike.

    __init__.py   data -> AuditReport: cross-validated probabilities, and what follows from them; near-duplicates
    report.py     the report as text, page, csv to edit and tasks of labelling tools; corrections back into the data

A label is suspicious where models that have not seen the row give it a low probability: the data is cut into folds, and
models are trained on all folds but one to predict that one. Documents with the same words share a fold.

    evidence        gives the reasons, too
    naive Bayes     of TF-IDF of words and pairs of words; strong where documents are few
    linear models   logistic regression: on TF-IDF of words and pairs; on TF-IDF of 2 to 5 characters, where documents
                    are few
    p = softmax of the mean of their log-odds, each with variance 1; the temperature is fitted on all rows

A run that was trained on other rows can judge instead (`run`): then nothing is trained.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from emhrnn.corpus import Corpus, Record, Source
from emhrnn.corpus.encode import has_words
from emhrnn.errors import DataError
from emhrnn.evaluation.calibration import fit_temperature
from emhrnn.explain.explainer import explain_texts
from emhrnn.extras import need
from emhrnn.models.predictor import probabilities
from emhrnn.shapes import Float, Int64
from emhrnn.training.data import Named
from emhrnn.training.run import Run

FEW = 1_500  # documents
FOLDS, OF_FEW, SLOW = 10, 20, 4  # of linear models, also with few documents; of evidence, which costs most
FEWEST = 10  # documents of a class that is compared with another
ALIKE = 0.6  # balanced accuracy between two classes, of which 0.5 is chance
STRANGE = 0.6  # share of a document's words that no other document has
LONG, SHORT = 20, 2  # times the median length; words
REASONS = 3
WIDTH = 3  # words of a run that near-duplicates share
BANDS, ROWS = 32, 4  # of a signature: pairs with a Jaccard index of 0.7 are missed once in 6,000
LEAST = 0.7  # Jaccard index of near-duplicates
MOST_COMPARED = 20  # documents of a bucket that each is compared with, so that time stays bounded
PRIME = (1 << 31) - 1
NEARLY = 0.9  # of the probability that right labels of a class have on average: a probable error
LARGEST = 15.0  # log-odds that count
STRENGTH = 10.0  # C of the linear models
CHARACTERS: dict[str, Any] = {"analyzer": "char_wb", "ngram_range": (2, 5), "sublinear_tf": True, "min_df": 2}
ADDED = 0.1  # to the count of each n-gram in each class, in naive Bayes


@dataclass(frozen=True)
class Reason:
    """A phrase that supports the suggested label more than the given one (`for`), or less (`against`)."""

    text: str
    start: int
    end: int
    effect: float


@dataclass(frozen=True)
class Suspect:
    """A row whose label is unlikely. `row` counts the rows of the data from 0; several labels are joined by a bar."""

    row: int
    id: str
    text: str
    label: str
    suggested: str
    p_label: float
    p_suggested: float
    likely: bool  # an error, by confident learning: the suggestion is nearly as sure as right ones of its class are
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Outlier:
    """A document unlike the others, and why."""

    row: int
    id: str
    text: str
    why: str


@dataclass(frozen=True)
class Alike:
    """Two classes that models tell apart hardly better than chance."""

    one: str
    other: str
    accuracy: float  # balanced, of the documents of both; 0.5 is chance
    documents: int


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """What was found; `suspects` have the least likely label first."""

    source: str
    documents: int
    skipped: int
    classes: tuple[str, ...]
    accuracy: float  # cross-validated
    errors: int  # rows that are likely errors, among all
    suspects: tuple[Suspect, ...]
    duplicates: tuple[tuple[int, ...], ...]  # rows of groups of near-duplicates
    conflicts: tuple[tuple[int, ...], ...]  # groups with different labels
    outliers: tuple[Outlier, ...]
    alike: tuple[Alike, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def audit(
    data: Named,
    *,
    folds: int | None = None,
    limit: int = 50,
    seed: int = 0,
    progress: bool = True,
    run: Run | None = None,
) -> AuditReport:
    """Look for rows that are probably wrong; of suspects and outliers, the first `limit`. A `run` that was trained on
    other rows judges them all, and nothing is trained.

    Raises:
        DataError: the data cannot be read, is too small, or has a label that the run does not know.
        ExtraError: torch is not installed, and no run is given.
    """
    if run is None:
        need("torch", "the audit")
    source = source_of(data)
    rows, records, skipped = list[int](), list[Record](), 0
    with closing(iter(source)) as read:
        for number, record in enumerate(read):
            usable = record.fault is None and record.label and has_words(record.text)
            skipped += not usable
            if usable:
                rows.append(number)
                records.append(record)
    folds = folds or (OF_FEW if 2 * OF_FEW <= len(records) < FEW else FOLDS)
    least = 1 if run else 2 * folds
    if len(records) < least:
        raise DataError(f"{data.path} has {len(records)} labelled documents; the audit needs {least} or more")
    texts = [record.text for record in records]
    labels = [record.label for record in records]
    several = any(isinstance(label, tuple) for label in labels)
    corpus = Corpus.from_texts(
        texts, [_tuple(label) for label in labels] if several else labels, classes=run.classes if run else None
    )
    if run:
        shares = run.predict(Corpus.from_texts(texts, vocabulary=run.vocabulary, text=run.text)).probabilities
        fold, runs = np.zeros(len(corpus), dtype=np.int64), [run]
    else:
        from emhrnn.training.validation import folds_of  # which takes torch

        corpus.check_trainable()
        fold = folds_of(corpus, folds, np.random.default_rng(seed))
        shares, runs = cross_validated(corpus, texts, fold, seed=seed, progress=progress)
    found = _suspicion(corpus, shares)
    order = np.argsort(found.p_label, kind="stable")
    order = order[found.suggested_differs[order]]
    names = [f"{record.id}" if record.id is not None else str(row) for row, record in zip(rows, records, strict=True)]
    suspects = tuple(
        Suspect(
            rows[i], names[i], texts[i], "|".join(_tuple(labels[i])), "|".join(found.suggested[i]),
            round(float(found.p_label[i]), 4), round(float(found.p_suggested[i]), 4), bool(found.likely[i]),
            _reasons(runs[fold[i]], texts[i], found.suggested[i], _tuple(labels[i])),
        )
        for i in order[:limit].tolist()
    )  # fmt: skip
    groups = near_duplicates(corpus)
    return AuditReport(
        source=str(data.path),
        documents=len(records),
        skipped=skipped,
        classes=corpus.classes,
        accuracy=float(1 - found.suggested_differs.mean()),
        errors=int(found.likely.sum()),
        suspects=suspects,
        duplicates=tuple(tuple(rows[i] for i in group) for group in groups),
        conflicts=tuple(tuple(rows[i] for i in group) for group in groups if len({labels[i] for i in group}) > 1),
        outliers=tuple(
            Outlier(rows[i], names[i], texts[i], why) for i, why in list(_outliers(corpus))[:limit]
        ),
        alike=tuple(_alike(corpus, shares)),
    )  # fmt: skip


def source_of(data: Named, *, keep: bool = False) -> Source:
    """The rows of the data; `keep` also keeps their columns."""
    columns = replace(data.columns, keep=keep)
    return Source(
        data.path, format=data.format, columns=columns, split=data.split, encoding=data.encoding, lenient=True
    )


def _tuple(label: Any) -> tuple[str, ...]:
    return label if isinstance(label, tuple) else (str(label),)


def cross_validated(
    corpus: Corpus,
    texts: list[str],
    fold: Int64[np.ndarray, " documents"],
    *,
    seed: int = 0,
    progress: bool = False,
) -> tuple[Float[np.ndarray, "documents classes"], list[Run]]:
    """The probabilities of each document by models of other folds; and the evidence model for each fold."""
    from tqdm import tqdm

    from emhrnn.models.fitting import fit_linear

    labels, classes, several = corpus.labels, len(corpus.classes), corpus.multi_label
    assert labels is not None
    folds, hidden = int(fold.max()) + 1, None if progress else True
    views = list(_views(corpus, texts, seed))
    opinions = np.zeros((2 + len(views), len(corpus), classes))
    runs = []
    for number in tqdm(range(min(folds, SLOW)), desc="evidence", disable=hidden):
        held = fold % SLOW == number
        others = corpus.select(np.flatnonzero(~held))
        others.check_trainable()
        runs.append(_trained(others, "evidence", seed))
        opinions[0, held] = runs[-1].predict(corpus.select(np.flatnonzero(held))).logits
    for number in tqdm(range(folds), desc="linear models", disable=hidden):
        held = fold == number
        opinions[1, held] = _naive_bayes(views[0], labels, classes, held)
        for opinion, view in zip(opinions[2:], views, strict=True):
            weight, bias = fit_linear(view[~held], labels[~held], classes, "logistic", STRENGTH, seed)
            opinion[held] = view[held] @ weight.numpy().T + bias.numpy()
    opinions = np.clip(opinions, -LARGEST, LARGEST)  # of a class that a fold does not have
    if not several:
        opinions -= opinions.mean(axis=2, keepdims=True)
    spread = opinions.std(axis=(1, 2), keepdims=True)
    logits = (opinions / np.where(spread > 0, spread, 1)).mean(axis=0).astype(np.float32)
    temperature, _ = fit_temperature(logits, labels)
    return probabilities(logits / temperature, multi_label=several), [runs[number % SLOW] for number in range(folds)]


def _views(corpus: Corpus, texts: list[str], seed: int) -> Iterator[Any]:
    """(documents, features) of each linear model: rows of length 1, which say nothing of labels."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = _trained(corpus, "tfidf-lr", seed).model
    yield model.features(corpus.batch(np.arange(len(corpus)))).csr()[:, np.flatnonzero(model.idf)]
    if len(texts) < FEW:
        yield TfidfVectorizer(**CHARACTERS).fit_transform(texts)


def _naive_bayes(
    features: Any, labels: np.ndarray, classes: int, held_out: np.ndarray
) -> Float[np.ndarray, "held_out classes"]:
    """Log-odds of each class against all others, for the documents held out.

    log p(c) / p(not c) + sum over n-grams of their TF-IDF * log(share in c / share in the others)
    """
    learned, labels = features[~held_out], labels[~held_out]
    mine = (labels if labels.ndim == 2 else np.eye(classes)[labels]).astype(np.float32)
    inside, outside = (ADDED + (learned.T @ part).T for part in (mine, 1 - mine))  # (classes, features)
    ratio = np.log(inside / inside.sum(axis=1, keepdims=True)) - np.log(outside / outside.sum(axis=1, keepdims=True))
    counts = mine.sum(axis=0)
    prior = np.log(counts + 1) - np.log(len(labels) - counts + 1)
    result: np.ndarray = features[held_out] @ ratio.T + prior
    return result


def _trained(corpus: Corpus, name: str, seed: int) -> Run:
    from emhrnn.training.config import make_config
    from emhrnn.training.data import untrained
    from emhrnn.training.progress import TrainingContext
    from emhrnn.training.train import fit

    run = untrained(make_config(model=name, settings={"training.seed": seed}), corpus, None)
    if run.model.fits_at_once:  # needs no validation data
        run.model.fit([corpus.batch(np.arange(len(corpus)))], seed)
    else:
        split = corpus.split(run.config.data.validation, np.random.default_rng(seed))
        fit(run, *split, TrainingContext(progress=False, say=lambda _: None))
    return run


@dataclass(frozen=True, eq=False)
class _Suspicion:
    p_label: Float[np.ndarray, " documents"]  # of several labels, of the least likely: given or not given
    p_suggested: Float[np.ndarray, " documents"]
    suggested: list[tuple[str, ...]]
    suggested_differs: np.ndarray
    likely: np.ndarray


def _suspicion(corpus: Corpus, shares: Float[np.ndarray, "documents classes"]) -> _Suspicion:
    labels = corpus.labels
    assert labels is not None
    everyone = np.arange(len(corpus))
    if labels.ndim == 2:
        agree = np.where(labels > 0.5, shares, 1 - shares)
        worst = agree.argmin(axis=1)
        chosen = shares > 0.5
        suggested = [tuple(corpus.classes[c] for c in np.flatnonzero(row)) for row in chosen]
        p = agree[everyone, worst]
        differs = (chosen != (labels > 0.5)).any(axis=1)
        return _Suspicion(p, 1 - p, suggested, differs, differs & (p < 0.1))
    best = shares.argmax(axis=1)
    mine = shares[everyone, labels]
    # confident learning: what right labels of a class usually get (Northcutt, Jiang and Chuang 2021)
    usual = np.array([mine[labels == c].mean() if (labels == c).any() else 1.0 for c in range(len(corpus.classes))])
    likely = (best != labels) & (shares[everyone, best] >= NEARLY * usual[best])
    suggested = [(corpus.classes[c],) for c in best.tolist()]
    return _Suspicion(mine, shares[everyone, best], suggested, best != labels, likely)


def _reasons(run: Run, text: str, suggested: tuple[str, ...], given: tuple[str, ...]) -> tuple[Reason, ...]:
    """The phrases with the largest difference between the evidence for the suggested labels and for the given ones."""
    if run.config.model.name != "evidence":
        return ()
    (explanation,) = explain_texts(run, [text])
    evidence = explanation.evidence
    if evidence is None:
        return ()
    place = {name: c for c, name in enumerate(evidence.classes)}
    more, less = ([place[name] for name in names if name not in others and name in place]
                  for names, others in ((suggested, given), (given, suggested)))  # fmt: skip
    said = evidence.phrases[:, more].sum(axis=1) - evidence.phrases[:, less].sum(axis=1)
    order = [k for k in np.argsort(-np.abs(said), kind="stable").tolist() if explanation.phrases[k].text.strip()]
    spelled = [k for k in order if any(map(str.isalnum, explanation.phrases[k].text))][: 2 * REASONS]
    nodes = [(explanation.phrases[k], float(said[k])) for k in spelled]
    return tuple(Reason(node.text, node.start, node.end, round(effect, 4)) for node, effect in nodes)


def _outliers(corpus: Corpus) -> Iterator[tuple[int, str]]:
    """Documents that have few words in common with others, the strangest first; then the very long and short ones."""
    documents = np.repeat(np.arange(len(corpus)), corpus.lengths)
    words = np.concatenate([corpus.batch(np.array([i])).words for i in range(len(corpus))])
    pairs = np.unique(np.stack([words, documents]), axis=1)
    seen = np.bincount(pairs[0], minlength=len(corpus.vocabulary))  # documents with the word
    own = np.bincount(pairs[1], weights=seen[pairs[0]] == 1, minlength=len(corpus))
    share = own / np.maximum(np.bincount(pairs[1], minlength=len(corpus)), 1)
    lengths, median = corpus.lengths, float(np.median(corpus.lengths))
    told = set()
    for i in np.argsort(-share, kind="stable").tolist():
        if share[i] >= STRANGE and lengths[i] > SHORT:
            told.add(i)
            yield i, f"{share[i]:.0%} of its words are in no other document"
    for i in np.argsort(-lengths, kind="stable").tolist():
        if lengths[i] > LONG * median and i not in told:
            yield i, f"{lengths[i]:,} words, the median is {median:g}"
    for i in np.flatnonzero((lengths <= SHORT) & (median > 5 * SHORT)).tolist():
        yield i, f"{lengths[i]} word{'' if lengths[i] == 1 else 's'}, the median is {median:g}"


def _alike(corpus: Corpus, shares: Float[np.ndarray, "documents classes"]) -> list[Alike]:
    """Pairs of classes with a low balanced accuracy between the two, the lowest first."""
    labels = corpus.labels
    if labels is None or labels.ndim == 2:
        return []
    counts = corpus.class_counts
    usual = [c for c in range(len(corpus.classes)) if counts[c] >= FEWEST]
    found = []
    for a, b in combinations(usual, 2):
        nearer = shares[:, a] >= shares[:, b]
        accuracy = (nearer[labels == a].mean() + (~nearer)[labels == b].mean()) / 2
        if accuracy < ALIKE:
            documents = int(counts[a] + counts[b])
            found.append(Alike(corpus.classes[a], corpus.classes[b], round(float(accuracy), 4), documents))
    return sorted(found, key=lambda pair: pair.accuracy)


def near_duplicates(corpus: Corpus, *, least: float = LEAST) -> list[tuple[int, ...]]:
    """Groups of two documents or more, by their numbers, that share most of their runs of WIDTH words. Documents with
    fewer words than a run count as duplicates only where they are equal.

    MinHash finds them in time that is linear in the data: candidates agree in all rows of one of the bands of their
    signatures; the Jaccard index |A and B| / |A or B| of their sets of runs is then computed exactly."""
    generator = np.random.default_rng(0)
    slopes, shifts = generator.integers(1, PRIME, (2, BANDS * ROWS, 1))
    runs = [_runs(corpus.batch(np.array([i])).words) for i in range(len(corpus))]
    parent = list(range(len(corpus)))
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for i, hashes in enumerate(runs):
        signature = ((slopes * hashes + shifts) % PRIME).min(axis=1).reshape(BANDS, ROWS)
        for band in range(BANDS):
            bucket = buckets[band, signature[band].tobytes()]
            for other in bucket[:MOST_COMPARED]:
                if _root(parent, i) != _root(parent, other) and _jaccard(hashes, runs[other]) >= least:
                    parent[_root(parent, i)] = _root(parent, other)
            bucket.append(i)
    groups: dict[int, list[int]] = defaultdict(list)
    for i in range(len(corpus)):
        groups[_root(parent, i)].append(i)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _runs(words: Int64[np.ndarray, " words"]) -> Int64[np.ndarray, " runs"]:
    """The distinct runs of words as numbers below PRIME; a short document is one run."""
    width = min(WIDTH, len(words))
    value = np.zeros(len(words) - width + 1, dtype=np.int64)
    for k in range(width):
        value = (value * 1_000_003 + words[k : len(words) - width + 1 + k] + 1) % PRIME
    return np.unique(value)


def _jaccard(one: Int64[np.ndarray, " n"], other: Int64[np.ndarray, " m"]) -> float:
    both = len(np.intersect1d(one, other, assume_unique=True))
    return both / (len(one) + len(other) - both)


def _root(parent: list[int], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
