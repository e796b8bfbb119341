"""Find rows to look at in labelled data: likely label errors, near-duplicates, outliers, classes that look alike.

    __init__.py   data -> AuditReport: cross-validated probabilities, and what follows from them; near-duplicates
    report.py     the report as text, page, csv to edit and tasks of labelling tools; corrections back into the data

A label is suspicious where models that have not seen the row give it a low probability: the data is cut into folds, and
three models are trained on all folds but one to predict that one. Documents with the same words share a fold.

    evidence        gives the reasons, too
    tfidf-lr        words and pairs of words, logistic regression
    naive Bayes     of the same features; the strongest where documents are few
    p = softmax of the weighted sum of their log-odds; the three weights are fitted on all rows

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
from emhrnn.explain.explainer import explain_texts
from emhrnn.extras import need
from emhrnn.models.predictor import probabilities
from emhrnn.shapes import Float, Int64
from emhrnn.training.data import Named
from emhrnn.training.run import Run

FOLDS, SLOW = 10, 4  # of linear models; of evidence, which costs most
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
SMALLEST = 1e-6  # probability that counts
LINEAR: dict[str, Any] = {"model.C": 10.0}  # of tfidf-lr
MOST = 10.0  # weight of a model, in standard deviations of its log-odds
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
    folds: int = FOLDS,
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
        shares, runs = cross_validated(corpus, fold, seed=seed, progress=progress)
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
    corpus: Corpus, fold: Int64[np.ndarray, " documents"], *, seed: int = 0, progress: bool = False
) -> tuple[Float[np.ndarray, "documents classes"], list[Run]]:
    """The probabilities of each document by models of other folds; and the evidence model for each fold."""
    from tqdm import tqdm

    folds, hidden = int(fold.max()) + 1, None if progress else True
    opinions = np.zeros((3, len(corpus), len(corpus.classes)))
    runs = []
    for number in tqdm(range(min(folds, SLOW)), desc="evidence", disable=hidden):
        others, held_out, places = _parted(corpus, fold % SLOW == number)
        runs.append(_trained(others, "evidence", {}, seed))
        opinions[0, places] = _log_odds(runs[-1].predict(held_out).probabilities)
    for number in tqdm(range(folds), desc="linear models", disable=hidden):
        others, held_out, places = _parted(corpus, fold == number)
        linear = _trained(others, "tfidf-lr", LINEAR, seed)
        opinions[1, places] = _log_odds(linear.predict(held_out).probabilities)
        opinions[2, places] = _naive_bayes(linear.model, others, held_out)
    if not corpus.multi_label:
        opinions -= opinions.mean(axis=2, keepdims=True)
    shares = probabilities(_weighted(opinions, corpus), multi_label=corpus.multi_label).astype(np.float32)
    return shares, [runs[number % SLOW] for number in range(folds)]


def _weighted(opinions: Float[np.ndarray, "models documents classes"], corpus: Corpus) -> np.ndarray:
    """(documents, classes): the sum of the opinions with the weights, none negative, that make the labels most likely.
    Classes may be hard for one model and easy for another."""
    from scipy.optimize import minimize

    labels, several = corpus.labels, corpus.multi_label
    assert labels is not None
    spread = opinions.std(axis=(1, 2), keepdims=True)
    scaled = opinions / np.where(spread > 0, spread, 1)
    wanted = labels if several else np.eye(len(corpus.classes))[labels]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        p = np.clip(probabilities(np.tensordot(weights, scaled, 1), multi_label=several), SMALLEST, 1 - SMALLEST)
        likelihood = (wanted * np.log(p)).sum() + several * ((1 - wanted) * np.log1p(-p)).sum()
        return -float(likelihood), ((p - wanted) * scaled).sum(axis=(1, 2))

    found = minimize(loss, np.ones(len(scaled)), jac=True, bounds=[(0, MOST)] * len(scaled))
    result: np.ndarray = np.tensordot(found.x, scaled, 1)
    return result


def _parted(corpus: Corpus, chosen: np.ndarray) -> tuple[Corpus, Corpus, Int64[np.ndarray, " chosen"]]:
    """The documents to learn from, those to judge, and the places of the latter."""
    places = np.flatnonzero(chosen)
    others = corpus.select(np.flatnonzero(~chosen))
    others.check_trainable()
    return others, corpus.select(places), places


def _log_odds(p: Float[np.ndarray, "documents classes"]) -> Float[np.ndarray, "documents classes"]:
    p = np.clip(p.astype(np.float64), SMALLEST, 1 - SMALLEST)
    result: np.ndarray = np.log(p) - np.log1p(-p)
    return result


def _naive_bayes(model: Any, learned: Corpus, judged: Corpus) -> Float[np.ndarray, "documents classes"]:
    """Log-odds of each class against all others, by the TF-IDF features of a model.

    log p(c) / p(not c) + sum over n-grams of their TF-IDF * log(share in c / share in the others)
    """
    labels = learned.labels
    assert labels is not None
    mine = (labels if labels.ndim == 2 else np.eye(len(learned.classes))[labels]).astype(np.float32)
    used = np.flatnonzero(model.idf)
    features, asked = (model.features(part.batch(np.arange(len(part)))).csr()[:, used] for part in (learned, judged))
    inside, outside = (ADDED + (features.T @ part).T for part in (mine, 1 - mine))  # (classes, features)
    ratio = np.log(inside / inside.sum(axis=1, keepdims=True)) - np.log(outside / outside.sum(axis=1, keepdims=True))
    counts = mine.sum(axis=0)
    prior = np.log(counts + 1) - np.log(len(learned) - counts + 1)
    result: np.ndarray = asked @ ratio.T + prior
    return result


def _trained(corpus: Corpus, name: str, settings: dict[str, Any], seed: int) -> Run:
    from emhrnn.training.config import make_config
    from emhrnn.training.data import untrained
    from emhrnn.training.progress import TrainingContext
    from emhrnn.training.train import fit

    run = untrained(make_config(model=name, settings={"training.seed": seed, **settings}), corpus, None)
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
