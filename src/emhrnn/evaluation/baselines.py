"""What a score is to be compared with: always the commonest class (of several labels, the commonest set), and TF-IDF of
words with a linear SVM, one for each of several labels; of characters and up to three in a row where the language is
written without blanks."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.scores import Scores, score
from emhrnn.layers.phrases import UNKNOWN_WORD
from emhrnn.models.tfidf import frequent_ngrams, ngram_counts
from emhrnn.shapes import Int64
from emhrnn.text.language import CHARACTERS

MAJORITY, SET, TFIDF = "majority class", "commonest set of labels", "TF-IDF + linear SVM"
MOST = 10_000  # documents that TF-IDF learns from: enough to compare with, within seconds
AT_ONCE = 2000  # documents that are counted together
LONGEST, MOST_NGRAMS = 3, 200_000  # of characters, and how many n-grams of them


def baselines(train: Corpus, test: Corpus) -> dict[str, Scores]:
    """The scores on `test` of both baselines, fitted to `train`, by name."""
    if train.labels is None or test.labels is None or train.multi_label != test.multi_label:
        return {}
    some = train if len(train) <= MOST else train.select(train.spread(MOST))
    labels, several = some.labels, some.multi_label
    assert labels is not None
    kinds, times = np.unique(train.labels, axis=0, return_counts=True)
    predicted = {SET if several else MAJORITY: np.repeat(kinds[[times.argmax()]], len(test), axis=0)}
    if len(np.unique(labels, axis=0)) > 1 and any((batch.words != UNKNOWN_WORD).any() for batch in _batches(some)):
        tfidf, longest = TfidfTransformer(sublinear_tf=True), LONGEST if some.text.language in CHARACTERS else 1
        sizes = {"vocabulary": len(some.vocabulary), "longest": longest}
        keys, _, _ = frequent_ngrams(_batches(some), **sizes, min_documents=1, most=MOST_NGRAMS)
        counts = [
            vstack([ngram_counts(batch, keys, **sizes).csr() for batch in _batches(corpus)], "csr")
            for corpus in (some, test)
        ]
        known, asked = tfidf.fit_transform(counts[0]), tfidf.transform(counts[1])
        columns = [_svm(known, asked, column) for column in (labels.T if several else [labels])]
        predicted[TFIDF] = np.stack(columns, axis=1) if several else columns[0]
    one_hot = np.eye(len(test.classes))
    return {
        name: score(found.astype(np.float64) if several else one_hot[found], test.labels, test.classes)
        for name, found in predicted.items()
    }


def _svm(train: csr_matrix, test: csr_matrix, labels: np.ndarray) -> np.ndarray:
    """The labels of test documents; with the only one of training, where there is but one."""
    if (labels == labels[0]).all():
        return np.full(test.shape[0], labels[0])
    predicted: np.ndarray = LinearSVC(random_state=0).fit(train, labels).predict(test)
    return predicted


def cross_validated(corpus: Corpus, fold: Int64[np.ndarray, " documents"]) -> dict[str, float]:
    """The accuracy of both baselines, by name, where each fold is predicted after a fit to the others."""
    folds = [fold == number for number in range(int(fold.max()) + 1)]
    found = [baselines(corpus.select(np.flatnonzero(~one)), corpus.select(np.flatnonzero(one))) for one in folds]
    weights = [one.sum() for one in folds]
    return {name: float(np.average([part[name].accuracy for part in found], weights=weights)) for name in found[0]}


def _batches(corpus: Corpus) -> Iterator[Batch]:
    for first in range(0, len(corpus), AT_ONCE):
        yield corpus.batch(np.arange(first, min(first + AT_ONCE, len(corpus))))
