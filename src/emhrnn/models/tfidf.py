"""TF-IDF of words and word pairs with a linear classifier: what most people would try first. `tfidf-lr` ends in a
logistic regression, `tfidf-svm` in a linear support vector machine, both fitted by scikit-learn.

    the room was great      words and pairs of neighbours within a sentence; unknown words make none. Of Chinese and
                            other languages that are written without blanks, runs of at most four characters
    count -> (1 + ln count) * idf -> rows of length 1 -> W f + b

    idf = 1 + ln((1 + documents) / (1 + documents that have it))

N-grams as features, here and in nb_lr.py: every run of neighbouring words within a sentence. An n-gram is one integer:
a word is its id w, and each further word turns key k into (k + 1) V + w. Keys of different n-grams differ, and shorter
ones are smaller. The features are a sorted array of keys, so that a batch finds its features by binary search and no
dictionary has to be saved. Prediction takes NumPy alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.layers.phrases import UNKNOWN_WORD
from emhrnn.models.predictor import Inference, Predictor
from emhrnn.models.row import Facts
from emhrnn.models.settings import TfIdfConfig
from emhrnn.shapes import Float32, Int64

if TYPE_CHECKING:
    from emhrnn.models.fitting import Classifier


AT_ONCE = 4_000_000  # products with weights, before they are added up
MERGE = 20_000_000  # counted n-grams to hold before equal ones are merged
LARGEST_KEY = np.iinfo(np.int64).max


def check_keys_fit(vocabulary: int, longest: int) -> None:
    """Raise a ConfigError where keys of `longest` words would not fit into 64 bits."""
    if sum(vocabulary**n for n in range(1, longest + 1)) > LARGEST_KEY:
        raise ConfigError(
            f"n-grams of {longest} words cannot be numbered with a vocabulary of {vocabulary:,} words; "
            "set data.max_vocabulary to 2000000 or fewer, or raise data.min_count"
        )


def ngrams_of(batch: Batch, vocabulary: int, longest: int) -> tuple[Int64[np.ndarray, " k"], Int64[np.ndarray, " k"]]:
    """The document and the key of every occurrence of an n-gram of up to `longest` words, shorter n-grams first."""
    words, final, known = batch.words, batch.sentence_final, batch.words != UNKNOWN_WORD
    document = batch.document_of_word
    start = np.flatnonzero(known)  # of each n-gram, in the batch
    key = words[start]
    documents, keys = [document[start]], [key]
    for length in range(2, longest + 1):
        last = start + length - 2  # its last word, so far
        longer = np.flatnonzero(~final[last])
        longer = longer[known[last[longer] + 1]]
        start, last = start[longer], last[longer]
        key = (key[longer] + 1) * vocabulary + words[last + 1]
        documents.append(document[start])
        keys.append(key)
    return np.concatenate(documents), np.concatenate(keys)


def frequent_ngrams(
    batches: Iterable[Batch], *, vocabulary: int, longest: int, min_documents: int, most: int
) -> tuple[Int64[np.ndarray, " features"], Int64[np.ndarray, " features"], int]:
    """Keys of the n-grams of most documents, in order, how many documents have each, and the number of documents. At
    most `most` n-grams, none of fewer than `min_documents`.

    Raises:
        DataError: there are no documents, or no such n-gram.
    """
    seen_keys, seen_counts, documents, held, limit = [], [], 0, 0, MERGE
    for batch in batches:
        document, key = ngrams_of(batch, vocabulary, longest)
        distinct, inverse = np.unique(key, return_inverse=True)
        once = np.unique(inverse * batch.n_documents + document)  # each n-gram once per document
        seen_keys.append(distinct)
        seen_counts.append(np.bincount(once // batch.n_documents, minlength=len(distinct)))
        documents += batch.n_documents
        held += len(distinct)
        if held > limit:
            seen_keys, seen_counts = ([together] for together in merged_counts(seen_keys, seen_counts))
            held = len(seen_keys[0])
            limit = max(MERGE, 2 * held)  # or each batch would be merged where more than MERGE differ
    if not seen_keys:
        raise DataError("no documents to fit; give at least one of each class")
    keys, counts = merged_counts(seen_keys, seen_counts)
    frequent = np.flatnonzero(counts >= min_documents)
    if not len(frequent):
        raise DataError(
            f"no n-gram of 1 to {longest} words is in {min_documents} of the {documents} documents or more, so there "
            "is nothing to tell classes by; give more documents, or lower data.min_count"
        )
    chosen = np.sort(frequent[np.argsort(-counts[frequent], kind="stable")][:most])
    return keys[chosen], counts[chosen], documents


@dataclass(frozen=True, eq=False)
class Features:
    """A sparse matrix (documents, features): the entries that are not 0, by document, then by feature."""

    document: Int64[np.ndarray, " entries"]
    feature: Int64[np.ndarray, " entries"]
    value: Float32[np.ndarray, " entries"]
    shape: tuple[int, int]

    def __matmul__(self, weight: Float32[np.ndarray, "features classes"]) -> Float32[np.ndarray, "documents classes"]:
        result = np.zeros((self.shape[0], weight.shape[1]), dtype=np.float32)
        step = max(AT_ONCE // max(weight.shape[1], 1), 1)
        for begin in range(0, len(self.document), step):
            part = slice(begin, begin + step)
            document = self.document[part]
            first = np.flatnonzero(np.diff(document, prepend=-1))  # entry of each document
            added = weight[self.feature[part]] * self.value[part, None]
            result[document[first]] += np.add.reduceat(added, first)
        return result

    def csr(self) -> Any:
        """For scikit-learn: a sparse matrix of SciPy."""
        from scipy import sparse

        offsets = np.searchsorted(self.document, np.arange(self.shape[0] + 1))
        return sparse.csr_matrix((self.value, self.feature, offsets), shape=self.shape)


def ngram_counts(batch: Batch, keys: Int64[np.ndarray, " features"], *, vocabulary: int, longest: int) -> Features:
    """How often each document has each n-gram of the sorted `keys`."""
    document, key = ngrams_of(batch, vocabulary, longest)
    place = np.searchsorted(keys, key)
    known = place < len(keys)
    known[known] = keys[place[known]] == key[known]
    width = max(len(keys), 1)
    entries, counts = np.unique(document[known] * width + place[known], return_counts=True)
    document, feature = np.divmod(entries, width)
    return Features(document, feature, counts.astype(np.float32), (batch.n_documents, len(keys)))


def merged_counts(
    keys: list[np.ndarray], counts: list[np.ndarray]
) -> tuple[Int64[np.ndarray, " distinct"], Int64[np.ndarray, " distinct"]]:
    """The distinct keys of several arrays, sorted, and the sum of the counts of each."""
    distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    return distinct, np.bincount(inverse, np.concatenate(counts), len(distinct)).astype(np.int64)


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
