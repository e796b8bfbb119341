r"""TF-IDF of words and word pairs with a linear classifier: what most people would try first. `tfidf-lr` ends in a
logistic regression, `tfidf-svm` in a linear support vector machine, both fitted by scikit-learn.

    the room was great      words and pairs of neighbours within a sentence; unknown words make none
    count -> (1 + ln count) * idf -> rows of length 1 -> W f + b

    idf = 1 + ln((1 + documents) / (1 + documents that have it))

An n-gram is one integer: a word is its id w, a pair is (w1 + 1) V + w2. `keys` holds those that are features, in order,
so that a batch finds its features by binary search and no dictionary has to be saved.
"""

from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Int64
from scipy import sparse
from sklearn.preprocessing import normalize
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.models.embedding import UNKNOWN
from emhrnn.models.fitting import Classifier, fit_linear, labels_of, weights_of
from emhrnn.models.output import Output

NO_KEY = np.iinfo(np.int64).max  # behind all keys: a feature that is not used
BEST_C = {"logistic": 10.0, "svm": 1.0}  # on the validation part of 8,000 Yelp reviews, of 0.05 to 10
MERGE = 20_000_000  # counted n-grams to hold before equal ones are merged


class TfIdf(nn.Module):
    keys: Tensor
    idf: Tensor
    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        *,
        vocabulary: int,
        classes: int,
        kind: Classifier,
        max_features: int = 200_000,
        min_documents: int = 2,
        C: float | None = None,
    ) -> None:
        """At most `max_features` n-grams, those of most documents; none of fewer than `min_documents`. C is the inverse
        strength of the regularisation."""
        super().__init__()
        self.vocabulary = vocabulary
        self.kind: Classifier = kind
        self.min_documents = min_documents
        self.C = C or BEST_C[kind]
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
        document, key = _ngrams(batch, self.vocabulary)
        keys = self.keys.numpy()
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        known = keys[place] == key
        rows, columns = document[known], place[known]
        counts = sparse.csr_matrix(
            (np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(batch.n_documents, len(keys))
        )
        counts.sum_duplicates()
        counts.data = (1 + np.log(counts.data)) * self.idf.numpy()[counts.indices]
        return normalize(counts)

    def _choose_features(self, batches: Iterable[Batch]) -> None:
        seen_keys, seen_documents, documents, held = [], [], 0, 0
        for batch in batches:
            document, key = _ngrams(batch, self.vocabulary)
            once = np.unique(key * batch.n_documents + document)  # each n-gram once per document
            keys, counts = np.unique(once // batch.n_documents, return_counts=True)
            seen_keys.append(keys)
            seen_documents.append(counts)
            documents += batch.n_documents
            held += len(keys)
            if held > MERGE:
                seen_keys, seen_documents = _merged(seen_keys, seen_documents)
                held = len(seen_keys[0])
        if not seen_keys:
            raise DataError("no documents to fit; give at least one of each class")
        (keys,), (counts,) = _merged(seen_keys, seen_documents)
        frequent = np.flatnonzero(counts >= self.min_documents)
        if not len(frequent):
            raise DataError(
                f"no word or pair of words is in {self.min_documents} of the {documents} documents or more, so there "
                "is nothing to tell classes by; give more documents, or lower data.min_count"
            )
        frequent = frequent[np.argsort(-counts[frequent], kind="stable")][: len(self.keys)]
        chosen = np.sort(frequent)
        self.keys.fill_(NO_KEY)[: len(chosen)] = torch.from_numpy(keys[chosen])
        idf = 1 + np.log((1 + documents) / (1 + counts[chosen]))
        self.idf.zero_()[: len(chosen)] = torch.from_numpy(idf).float()


def _ngrams(batch: Batch, vocabulary: int) -> tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " k"]]:
    """The document and the key of every n-gram occurrence."""
    words = batch.words
    document = batch.document_of_sentence[batch.sentence_of_word]
    known = words != UNKNOWN
    pair = known[:-1] & known[1:] & ~batch.sentence_final[:-1]
    pairs = (words[:-1][pair] + 1) * vocabulary + words[1:][pair]
    return np.concatenate([document[known], document[:-1][pair]]), np.concatenate([words[known], pairs])


def _merged(keys: list[np.ndarray], counts: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Equal keys added up, as lists of one array."""
    distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    return [distinct], [np.bincount(inverse, np.concatenate(counts), len(distinct)).astype(np.int64)]
