"""What a score is to be compared with: always the commonest class, and TF-IDF of words with a linear SVM; of characters
and up to three in a row where the language is written without blanks."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import vstack
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.evaluation.scores import Scores, score
from emhrnn.layers.phrases import UNKNOWN_WORD
from emhrnn.models.tfidf import frequent_ngrams, ngram_counts
from emhrnn.shapes import Int64
from emhrnn.text.language import CHARACTERS

MAJORITY, TFIDF = "majority class", "TF-IDF + linear SVM"
MOST = 10_000  # documents that TF-IDF learns from: enough to compare with, within seconds
AT_ONCE = 2000  # documents that are counted together
LONGEST, MOST_NGRAMS = 3, 200_000  # of characters, and how many n-grams of them


def baselines(train: Corpus, test: Corpus) -> dict[str, Scores]:
    """The scores on `test` of both baselines, fitted to `train`, by name; none where documents have several labels."""
    if train.labels is None or test.labels is None or train.multi_label or test.multi_label:
        return {}
    some = train if len(train) <= MOST else train.select(train.spread(MOST))
    assert some.labels is not None
    commonest = np.full(len(test), np.bincount(train.labels).argmax())
    predicted = {MAJORITY: commonest}
    if len(np.unique(some.labels)) > 1 and any((batch.words != UNKNOWN_WORD).any() for batch in _batches(some)):
        tfidf, longest = TfidfTransformer(sublinear_tf=True), LONGEST if some.text.language in CHARACTERS else 1
        sizes = {"vocabulary": len(some.vocabulary), "longest": longest}
        keys, _, _ = frequent_ngrams(_batches(some), **sizes, min_documents=1, most=MOST_NGRAMS)
        counts = [
            vstack([ngram_counts(batch, keys, **sizes).csr() for batch in _batches(corpus)], "csr")
            for corpus in (some, test)
        ]
        svm = LinearSVC(random_state=0).fit(tfidf.fit_transform(counts[0]), some.labels)
        predicted[TFIDF] = svm.predict(tfidf.transform(counts[1]))
    one_hot = np.eye(len(test.classes))
    return {name: score(one_hot[labels], test.labels, test.classes) for name, labels in predicted.items()}


def cross_validated(corpus: Corpus, fold: Int64[np.ndarray, " documents"]) -> dict[str, float]:
    """The accuracy of both baselines, by name, where each fold is predicted after a fit to the others."""
    folds = [fold == number for number in range(int(fold.max()) + 1)]
    found = [baselines(corpus.select(np.flatnonzero(~one)), corpus.select(np.flatnonzero(one))) for one in folds]
    weights = [one.sum() for one in folds]
    return {name: float(np.average([part[name].accuracy for part in found], weights=weights)) for name in found[0]}


def _batches(corpus: Corpus) -> Iterator[Batch]:
    for first in range(0, len(corpus), AT_ONCE):
        yield corpus.batch(np.arange(first, min(first + AT_ONCE, len(corpus))))
