r"""Logistic regression on log-count ratios of n-grams, a strong baseline for reviews: NB-SVM (Wang and Manning, ACL
2012) with logistic regression in place of the SVM.

    f_g = 1 if n-gram g is in the document, else 0      words, pairs and triples that are in two documents or more
    p_g = 1 + documents of class y that have g          q_g = 1 + other documents that have g
    r_g = ln (p_g / sum p) - ln (q_g / sum q)
    log-odds of y = sum_g w_g r_g f_g + b               w, b by logistic regression, with regularisation 1 / C

One such problem per class, each against the rest; two classes share one. With several labels per document, one problem
per label. To choose C, a tenth of the training documents is held out and the rest fitted, for as many tenths as make
3,000 documents; then all are fitted with it. Ratios of that search are counted without the held-out documents, whose
labels they would give away.

Only the products w r are kept, for as many n-grams as there are. Prediction takes NumPy alone.
"""

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.models.predictor import Inference, Predictor
from emhrnn.models.row import Facts
from emhrnn.models.settings import NBLRConfig
from emhrnn.models.tfidf import Features, check_keys_fit, frequent_ngrams, ngram_counts
from emhrnn.shapes import Float32, Float64, Int64

LONGEST = 3  # words of an n-gram
GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)  # of C
PATIENCE = 2  # values of C in a row that are no better, before the search ends: large ones take long to fit
TENTHS = 10  # parts of the documents; one at a time is held out to choose C
ENOUGH = 3000  # documents that are held out, in as many tenths as it takes
USUAL_C = 1.0  # where there are fewer documents than tenths
MOST_WEIGHTS = 50_000_000  # 200 MB: many classes have fewer n-grams


Matrix: TypeAlias = Any  # of SciPy: sparse, (documents, features)
Weights: TypeAlias = Float32[np.ndarray, " documents"] | None


class NBLR(Predictor):
    """Logistic regression on log-count ratios of n-grams."""

    fits_at_once = True

    def __init__(self, config: NBLRConfig, *, vocabulary: int, classes: int, min_documents: int = 2) -> None:
        """`vocabulary` is how many words there are. N-grams of fewer than `min_documents` documents are left out.

        Raises:
            ConfigError: the vocabulary is too large to number triples of its words.
        """
        check_keys_fit(vocabulary, LONGEST)
        self.vocabulary = vocabulary
        self.max_features = max(min(config.max_features, MOST_WEIGHTS // classes), 1)
        self.min_documents = min_documents
        self.C = config.C
        self.keys = np.zeros(0, dtype=np.int64)
        self.weight = np.zeros((0, classes), dtype=np.float32)  # (features, classes): w r
        self.bias = np.zeros(classes, dtype=np.float32)
        self.chosen_c = np.zeros((), dtype=np.float32)

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"keys": self.keys, "weight": self.weight, "bias": self.bias, "chosen_c": self.chosen_c}

    def infer(self, batch: Batch) -> Inference:
        logits = self.features(batch) @ self.weight + self.bias
        return Inference(logits, logits)  # the document vector would be as wide as the features

    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        from scipy import sparse

        from emhrnn.models.fitting import labels_of, weights_of

        self.keys, _, _ = frequent_ngrams(
            batches,
            vocabulary=self.vocabulary,
            longest=LONGEST,
            min_documents=self.min_documents,
            most=self.max_features,
        )
        features = sparse.vstack([self.features(batch).csr() for batch in batches], format="csr")
        labels, weights = labels_of(batches), weights_of(batches)
        if weights is not None:
            used = np.flatnonzero(weights)
            features, labels, weights = features[used], labels[used], weights[used]
        classes = len(self.bias)
        C = self.C or _choose_c(features, labels, classes, seed, weights)
        self.weight, self.bias = fit_ratios(features, labels, classes, C, seed, weights)
        self.chosen_c = np.array(C, dtype=np.float32)

    def features(self, batch: Batch) -> Features:
        """(documents, features), float32: 1 where the document has the n-gram."""
        counts = ngram_counts(batch, self.keys, vocabulary=self.vocabulary, longest=LONGEST)
        return Features(counts.document, counts.feature, np.ones_like(counts.value), counts.shape)


def expected_shapes(
    config: NBLRConfig, facts: Facts, words: int, size: int, arrays: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, ...]]:
    """Of the arrays of a trained model. How many features it has, the arrays say."""
    features, classes = arrays["keys"].size if "keys" in arrays else 0, facts.classes
    return {"keys": (features,), "weight": (features, classes), "bias": (classes,), "chosen_c": ()}


def log_ratio(
    features: Matrix, yes: Float64[np.ndarray, " documents"], weights: Weights = None
) -> Float64[np.ndarray, " features"]:
    """How much more of the documents with `yes` = 1 than of those with 0 have each feature; a document of weight 2
    counts twice."""
    counts = np.ones_like(yes) if weights is None else weights.astype(np.float64)
    p = 1 + features.T @ (counts * yes)
    q = 1 + features.T @ (counts * (1 - yes))
    ratio: np.ndarray = np.log(p / p.sum()) - np.log(q / q.sum())
    return ratio


def fit_ratios(
    features: Matrix, labels: np.ndarray, classes: int, C: float, seed: int, weights: Weights = None
) -> tuple[Float32[np.ndarray, "features classes"], Float32[np.ndarray, " classes"]]:
    """Weight and bias with log-odds = features @ weight + bias: one yes/no problem per class. Two classes of which a
    document has one share a problem, and each gets half of its log-odds."""
    weight = np.zeros((features.shape[1], classes), dtype=np.float32)
    bias = np.zeros(classes, dtype=np.float32)
    halves = classes == 2 and labels.ndim == 1
    for y in (1,) if halves else range(classes):
        yes = (labels == y if labels.ndim == 1 else labels[:, y]).astype(np.float64)
        weight[:, y], bias[y] = _fit_one(features, yes, C, seed, weights)
    if halves:
        weight[:, 1] /= 2
        bias[1] /= 2
        weight[:, 0], bias[0] = -weight[:, 1], -bias[1]
    return weight, bias


def _fit_one(
    features: Matrix, yes: Float64[np.ndarray, " documents"], C: float, seed: int, weights: Weights
) -> tuple[Float64[np.ndarray, " features"], float]:
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    from emhrnn.models.fitting import NEVER

    if yes.min() == yes.max():
        return np.zeros(features.shape[1]), NEVER if yes[0] == 0 else -NEVER
    ratio = log_ratio(features, yes, weights)
    scaled = sparse.csr_matrix((ratio[features.indices], features.indices, features.indptr), shape=features.shape)
    # There are far more features than documents, so that the dual problem is the smaller one.
    model = LogisticRegression(C=C, solver="liblinear", dual=True, tol=0.01, max_iter=1000, random_state=seed % 2**32)
    model.fit(scaled, yes, sample_weight=weights)
    return ratio * model.coef_[0], float(model.intercept_[0])


def _choose_c(features: Matrix, labels: np.ndarray, classes: int, seed: int, weights: Weights) -> float:
    """The value of GRID with most right answers on held-out documents; of equal ones, the most probable answers."""
    order = np.random.default_rng(seed).permutation(len(labels))
    tenths = [tenth for tenth in np.array_split(order, TENTHS) if len(tenth)]
    if len(tenths) < TENTHS:
        return USUAL_C
    tenths = tenths[: math.ceil(ENOUGH / len(tenths[0]))]
    best_C, best, waited = USUAL_C, (-np.inf, -np.inf), 0
    for C in GRID:
        scores = [_held_out_score(features, labels, classes, C, seed, weights, tenth) for tenth in tenths]
        score = tuple(np.mean(scores, axis=0))
        if score > best:
            best_C, best, waited = C, score, 0
        else:
            waited += 1
        if waited == PATIENCE:
            break
    return best_C


def _held_out_score(
    features: Matrix,
    labels: np.ndarray,
    classes: int,
    C: float,
    seed: int,
    weights: Weights,
    held: Int64[np.ndarray, " held"],
) -> tuple[float, float]:
    """Of these documents, by a classifier that is fitted to all others."""
    from sklearn.exceptions import ConvergenceWarning

    rest = np.setdiff1d(np.arange(len(labels)), held)
    of_rest, of_held = (None, None) if weights is None else (weights[rest], weights[held])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a value that is hard to fit may still be compared
        weight, bias = fit_ratios(features[rest], labels[rest], classes, C, seed, of_rest)
    return _score(features[held] @ weight + bias, labels[held], of_held)


def _score(
    logits: Float32[np.ndarray, "documents classes"], labels: np.ndarray, weights: Weights
) -> tuple[float, float]:
    """Share of right answers and mean log-likelihood; with several labels per document, over all yes/no answers."""
    if labels.ndim == 1:
        right = (logits.argmax(axis=1) == labels).astype(np.float64)
        log_likelihood = logits[np.arange(len(labels)), labels] - np.logaddexp.reduce(logits, axis=1)
    else:
        right = ((logits > 0) == (labels > 0)).mean(axis=1)
        log_likelihood = -np.logaddexp(0, np.where(labels > 0, -logits, logits)).mean(axis=1)
    return float(np.average(right, weights=weights)), float(np.average(log_likelihood, weights=weights))
