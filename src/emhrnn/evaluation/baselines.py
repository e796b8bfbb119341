"""What a score is to be compared with: always the commonest class, and TF-IDF of words with a linear SVM."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from emhrnn.corpus import Corpus
from emhrnn.evaluation.scores import Scores, score

MAJORITY, TFIDF = "majority class", "TF-IDF + linear SVM"
MOST = 10_000  # documents that TF-IDF learns from: enough to compare with, within seconds
AT_ONCE = 2000  # documents that are counted together


def baselines(train: Corpus, test: Corpus) -> dict[str, Scores]:
    """The scores on `test` of both baselines, fitted to `train`, by name; none where documents have several labels."""
    if train.labels is None or test.labels is None or train.multi_label or test.multi_label:
        return {}
    some = train if len(train) <= MOST else train.select(train.spread(MOST))
    assert some.labels is not None
    commonest = np.full(len(test), np.bincount(train.labels).argmax())
    predicted = {MAJORITY: commonest}
    if len(np.unique(some.labels)) > 1:
        tfidf = TfidfTransformer(sublinear_tf=True)
        svm = LinearSVC(random_state=0).fit(tfidf.fit_transform(_counts(some)), some.labels)
        predicted[TFIDF] = svm.predict(tfidf.transform(_counts(test)))
    one_hot = np.eye(len(test.classes))
    return {name: score(one_hot[labels], test.labels, test.classes) for name, labels in predicted.items()}


def _counts(corpus: Corpus) -> csr_matrix:
    """How often each document has each word."""
    parts = [
        corpus.batch(np.arange(first, min(first + AT_ONCE, len(corpus)))) for first in range(0, len(corpus), AT_ONCE)
    ]
    words = np.concatenate([part.words for part in parts])
    ends = np.concatenate([[0], np.cumsum(np.concatenate([part.document_lengths for part in parts]))])
    counts = csr_matrix((np.ones(len(words)), words, ends), shape=(len(corpus), len(corpus.vocabulary)))
    counts.sum_duplicates()
    return counts
