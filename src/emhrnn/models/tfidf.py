r"""TF-IDF of words and word pairs with a linear classifier: what most people would try first. `tfidf-lr` ends in a
logistic regression, `tfidf-svm` in a linear support vector machine, both fitted by scikit-learn.

    the room was great      words and pairs of neighbours within a sentence; unknown words make none. Of Chinese and
                            other languages that are written without blanks, runs of at most four characters
    count -> (1 + ln count) * idf -> rows of length 1 -> W f + b

    idf = 1 + ln((1 + documents) / (1 + documents that have it))

`keys` holds the n-grams that are features (models/ngram_features.py). Prediction takes NumPy alone.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.models.ngram_features import Features, check_keys_fit, frequent_ngrams, ngram_counts
from emhrnn.models.predictor import Inference, Predictor
from emhrnn.models.row import Facts
from emhrnn.models.settings import TfIdfConfig

if TYPE_CHECKING:
    from emhrnn.models.fitting import Classifier

NO_KEY = np.iinfo(np.int64).max  # behind all keys: a feature that is not used


class TfIdf(Predictor):
    """TF-IDF of n-grams and a linear classifier."""

    fits_at_once = True

    def __init__(
        self, config: TfIdfConfig, *, vocabulary: int, classes: int, kind: "Classifier", min_documents: int = 2
    ) -> None:
        """`vocabulary` is how many words there are. N-grams of fewer than `min_documents` documents are left out."""
        self.longest = config.ngram_words
        check_keys_fit(vocabulary, self.longest)
        self.vocabulary = vocabulary
        self.kind: Classifier = kind
        self.min_documents = min_documents
        self.C = config.C
        self.keys = np.full(config.max_features, NO_KEY)
        self.idf = np.zeros(config.max_features, dtype=np.float32)
        self.weight = np.zeros((classes, config.max_features), dtype=np.float32)
        self.bias = np.zeros(classes, dtype=np.float32)

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"keys": self.keys, "idf": self.idf, "weight": self.weight, "bias": self.bias}

    def infer(self, batch: Batch) -> Inference:
        logits = self.features(batch) @ self.weight.T + self.bias
        return Inference(logits, logits)  # the document vector would be as wide as the features

    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        from scipy import sparse

        from emhrnn.models.fitting import fit_linear, labels_of, weights_of

        self._choose_features(batches)
        features = sparse.vstack([self.features(batch).csr() for batch in batches], format="csr")
        used = int((self.keys != NO_KEY).sum())
        labels, weights = labels_of(batches), weights_of(batches)
        weight, bias = fit_linear(features[:, :used], labels, len(self.bias), self.kind, self.C, seed, weights)
        self.weight = np.zeros_like(self.weight)
        self.weight[:, :used] = weight
        self.bias = bias.numpy()

    def features(self, batch: Batch) -> Features:
        """(documents, features), float32, rows of length 1; a document without any feature is a row of zeros."""
        counts = ngram_counts(batch, self.keys, vocabulary=self.vocabulary, longest=self.longest)
        value = (1 + np.log(counts.value)) * self.idf[counts.feature]
        norm = np.sqrt(np.bincount(counts.document, value * value, batch.n_documents))
        return Features(
            counts.document, counts.feature, (value / norm[counts.document]).astype(np.float32), counts.shape
        )

    def _choose_features(self, batches: Iterable[Batch]) -> None:
        keys, counts, documents = frequent_ngrams(
            batches,
            vocabulary=self.vocabulary,
            longest=self.longest,
            min_documents=self.min_documents,
            most=len(self.keys),
        )
        self.keys = np.full(len(self.keys), NO_KEY)
        self.keys[: len(keys)] = keys
        self.idf = np.zeros_like(self.idf)
        self.idf[: len(keys)] = 1 + np.log((1 + documents) / (1 + counts))


def expected_shapes(
    config: TfIdfConfig, facts: Facts, words: int, size: int, arrays: Mapping[str, np.ndarray]
) -> dict[str, tuple[int, ...]]:
    """Of the arrays of a trained model."""
    features, classes = config.max_features, facts.classes
    return {"keys": (features,), "idf": (features,), "weight": (classes, features), "bias": (classes,)}
