"""Find rows to look at in labelled data: likely label errors, near-duplicates, outliers, classes that look alike.

    __init__.py     data -> AuditReport: cross-validated probabilities, and what follows from them
    duplicates.py   near-duplicates by MinHash
    page.py         the report as text and as one HTML page
    tasks.py        rows as csv to edit, Label Studio and Prodigy tasks; corrections back into the data

A label is suspicious where models that have not seen the row give it a low probability: the data is cut into folds, and
an evidence model and a linear one are trained on all folds but one to predict that one. Documents with the same words
share a fold.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from jaxtyping import Float, Int64

from emhrnn.audit.duplicates import near_duplicates
from emhrnn.corpus import Corpus, Record, Source
from emhrnn.corpus.encode import has_words
from emhrnn.errors import DataError
from emhrnn.explain.explainer import explain_texts
from emhrnn.extras import need
from emhrnn.models.predictor import probabilities
from emhrnn.training.data import Named
from emhrnn.training.run import Run

FOLDS, FEWEST = 10, 10  # fewest documents of a class that is compared with another
ALIKE = 0.6  # balanced accuracy between two classes, of which 0.5 is chance
STRANGE = 0.6  # share of a document's words that no other document has
LONG, SHORT = 20, 2  # times the median length; words
REASONS = 3
SMALLEST = 1e-4  # probability that counts
NGRAMS, MOST_NGRAMS = 2, 200_000  # words of an n-gram of the linear model, and how many n-grams it has


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
    likely: bool  # an error, by confident learning: the suggestion is as sure as right ones of its class usually are
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


def audit(data: Named, *, folds: int = FOLDS, limit: int = 50, seed: int = 0, progress: bool = True) -> AuditReport:
    """Look for rows that are probably wrong; of suspects and outliers, the first `limit`.

    Raises:
        DataError: the data cannot be read, or is too small.
        ExtraError: torch is not installed.
    """
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
    if len(records) < 2 * folds:
        raise DataError(f"{data.path} has {len(records)} labelled documents; the audit needs {2 * folds} or more")
    texts = [record.text for record in records]
    labels = [record.label for record in records]
    several = any(isinstance(label, tuple) for label in labels)
    corpus = Corpus.from_texts(texts, [_tuple(label) for label in labels] if several else labels)
    corpus.check_trainable()
    fold = folds_of(corpus, folds, np.random.default_rng(seed))
    shares, runs = cross_validated(corpus, fold, seed=seed, progress=progress)
    shares = combined(corpus, [shares, linear_shares(corpus, fold)])
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


def folds_of(corpus: Corpus, folds: int, generator: np.random.Generator) -> Int64[np.ndarray, " documents"]:
    """The fold of each document: of every class about as many in each, and the same words in the same."""
    first, labels = corpus.first_equal, corpus.labels
    assert labels is not None
    distinct = np.flatnonzero(first == np.arange(len(corpus)))
    order = generator.permutation(distinct)
    if labels.ndim == 1:
        order = order[np.argsort(labels[order], kind="stable")]
    fold = np.zeros(len(corpus), dtype=np.int64)
    fold[order] = np.arange(len(order)) % folds
    result: np.ndarray = fold[first]
    return result


def cross_validated(
    corpus: Corpus, fold: Int64[np.ndarray, " documents"], *, seed: int = 0, progress: bool = False
) -> tuple[Float[np.ndarray, "documents classes"], list[Run]]:
    """The probabilities of each document by a model of the other folds, and these models."""
    from tqdm import tqdm

    from emhrnn.training.config import make_config
    from emhrnn.training.data import untrained
    from emhrnn.training.progress import TrainingContext
    from emhrnn.training.train import fit

    config = make_config(settings={"training.seed": seed})
    shares = np.zeros((len(corpus), len(corpus.classes)), dtype=np.float32)
    runs = []
    for number in tqdm(range(int(fold.max()) + 1), desc="folds", disable=None if progress else True):
        others = corpus.select(np.flatnonzero(fold != number))
        held_out = np.flatnonzero(fold == number)
        others.check_trainable()
        run = untrained(config, others, None)
        split = others.split(run.config.data.validation, np.random.default_rng(seed))
        fit(run, *split, TrainingContext(progress=False, say=lambda _: None))
        shares[held_out] = run.predict(corpus.select(held_out)).probabilities
        runs.append(run)
    return shares, runs


def linear_shares(corpus: Corpus, fold: Int64[np.ndarray, " documents"]) -> Float[np.ndarray, "documents classes"]:
    """The same by TF-IDF and logistic regression, a second opinion that few documents suffice for."""
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    from emhrnn.models.ngram_features import frequent_ngrams, ngram_counts

    labels, whole = corpus.labels, corpus.batch(np.arange(len(corpus)))
    assert labels is not None
    sizes = {"vocabulary": len(corpus.vocabulary), "longest": NGRAMS}
    keys, _, _ = frequent_ngrams([whole], **sizes, min_documents=2, most=MOST_NGRAMS)
    found = ngram_counts(whole, keys, **sizes)
    counts = csr_matrix((found.value, (found.document, found.feature)), shape=found.shape)
    targets = [labels] if labels.ndim == 1 else list((labels > 0.5).T)
    shares = np.full((len(corpus), len(corpus.classes)), SMALLEST, dtype=np.float32)
    for number in range(int(fold.max()) + 1):
        others, held_out = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        tfidf = TfidfTransformer(sublinear_tf=True)
        learned, judged = tfidf.fit_transform(counts[others]), tfidf.transform(counts[held_out])
        for column, target in enumerate(targets):
            if len(np.unique(target[others])) < 2:
                shares[held_out, column] = target[others][0]
                continue
            linear = LogisticRegression(C=10.0, max_iter=1000).fit(learned, target[others])
            chances = linear.predict_proba(judged)
            if labels.ndim == 1:
                shares[np.ix_(held_out, linear.classes_)] = chances
            else:
                shares[held_out, column] = chances[:, 1]
    return shares


def combined(
    corpus: Corpus, opinions: list[Float[np.ndarray, "documents classes"]]
) -> Float[np.ndarray, "documents classes"]:
    """One opinion of several: their log-odds with the weights that make the labels most likely. Two numbers that are
    fitted to all documents hide no wrong label."""
    from scipy.optimize import minimize

    labels = corpus.labels
    assert labels is not None
    one = labels.ndim == 1
    logs = np.stack([np.log(np.clip(shares.astype(np.float64), SMALLEST, 1 - SMALLEST)) for shares in opinions])
    if not one:
        logs -= np.log1p(-np.exp(logs))
    right = np.eye(len(corpus.classes))[labels] if one else labels > 0.5

    def mixed(weights: np.ndarray) -> np.ndarray:
        return probabilities(np.tensordot(weights, logs, 1), multi_label=not one)

    def loss(weights: np.ndarray) -> float:
        p = np.clip(mixed(weights), 1e-12, 1 - 1e-12)
        return float(-np.log(p[right > 0.5]).sum() - (0 if one else np.log1p(-p[~right]).sum()))

    start = np.full(len(opinions), 1 / len(opinions))
    fitted = minimize(loss, start, bounds=[(0, None)] * len(opinions), method="L-BFGS-B").x
    return mixed(fitted).astype(np.float32)


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
    likely = (best != labels) & (shares[everyone, best] >= usual[best])
    suggested = [(corpus.classes[c],) for c in best.tolist()]
    return _Suspicion(mine, shares[everyone, best], suggested, best != labels, likely)


def _reasons(run: Run, text: str, suggested: tuple[str, ...], given: tuple[str, ...]) -> tuple[Reason, ...]:
    """The phrases with the largest difference between the evidence for the suggested labels and for the given ones."""
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
        yield i, f"{lengths[i]} word{'s' * (lengths[i] != 1)}, the median is {median:g}"


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
