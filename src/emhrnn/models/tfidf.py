r"""TF-IDF of words and word pairs with a linear classifier: what most people would try first. `tfidf-lr` ends in a
logistic regression, `tfidf-svm` in a linear support vector machine, both fitted by scikit-learn.

    the room was great      words and pairs of neighbours within a sentence; unknown words make none. Of Chinese and
                            other languages that are written without blanks, runs of at most four characters
    count -> (1 + ln count) * idf -> rows of length 1 -> W f + b

    idf = 1 + ln((1 + documents) / (1 + documents that have it))

`keys` holds the n-grams that are features (models/ngram_features.py).
"""

from collections.abc import Iterable

import numpy as np
import torch
from scipy import sparse
from sklearn.preprocessing import normalize
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.models.fitting import Classifier, fit_linear, labels_of, weights_of
from emhrnn.models.model import DocumentModel
from emhrnn.models.ngram_features import check_keys_fit, frequent_ngrams, ngram_counts
from emhrnn.models.output import Output
from emhrnn.models.settings import TfIdfConfig

NO_KEY = np.iinfo(np.int64).max  # behind all keys: a feature that is not used


class TfIdf(DocumentModel):
    """TF-IDF of n-grams and a linear classifier."""

    keys: Tensor
    idf: Tensor
    weight: Tensor
    bias: Tensor

    fits_at_once = True

    def __init__(
        self, config: TfIdfConfig, *, vocabulary: int, classes: int, kind: Classifier, min_documents: int = 2
    ) -> None:
        """`vocabulary` is how many words there are. N-grams of fewer than `min_documents` documents are left out."""
        super().__init__()
        max_features, self.longest = config.max_features, config.ngram_words
        check_keys_fit(vocabulary, self.longest)
        self.vocabulary = vocabulary
        self.kind: Classifier = kind
        self.min_documents = min_documents
        self.C = config.C
        self.register_buffer("keys", torch.full((max_features,), NO_KEY))
        self.register_buffer("idf", torch.zeros(max_features))
        self.register_buffer("weight", torch.zeros(classes, max_features))
        self.register_buffer("bias", torch.zeros(classes))

    @torch.no_grad()
    def forward(self, batch: Batch, generator: torch.Generator | None = None) -> Output:
        logits = torch.from_numpy(self.features(batch) @ self.weight.numpy().T) + self.bias
        return Output(logits, logits)  # the document vector would be as wide as the features

    def fit(self, batches: Iterable[Batch], seed: int = 0) -> None:
        self._choose_features(batches)
        features = sparse.vstack([self.features(batch) for batch in batches], format="csr")
        used = int((self.keys != NO_KEY).sum())
        labels, weights = labels_of(batches), weights_of(batches)
        weight, bias = fit_linear(features[:, :used], labels, len(self.bias), self.kind, self.C, seed, weights)
        self.weight.zero_()[:, :used] = weight
        self.bias.copy_(bias)

    def features(self, batch: Batch) -> sparse.csr_matrix:
        """(documents, features), float32, rows of length 1; a document without any feature is a row of zeros."""
        counts = ngram_counts(batch, self.keys.numpy(), vocabulary=self.vocabulary, longest=self.longest)
        counts.data = (1 + np.log(counts.data)) * self.idf.numpy()[counts.indices]
        return normalize(counts)

    def _choose_features(self, batches: Iterable[Batch]) -> None:
        keys, counts, documents = frequent_ngrams(
            batches,
            vocabulary=self.vocabulary,
            longest=self.longest,
            min_documents=self.min_documents,
            most=len(self.keys),
        )
        self.keys.fill_(NO_KEY)[: len(keys)] = torch.from_numpy(keys)
        idf = 1 + np.log((1 + documents) / (1 + counts))
        self.idf.zero_()[: len(keys)] = torch.from_numpy(idf).float()
