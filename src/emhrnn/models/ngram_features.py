r"""N-grams as the features of a linear classifier: every run of neighbouring words within a sentence. A run with an
unknown word is not an n-gram.

    the room was great      the, room, was, great, the room, room was, was great, the room was, room was great

An n-gram is one integer: a word is its id w, and each further word turns key k into (k + 1) V + w. Keys of different
n-grams differ, and shorter ones are smaller. The features are a sorted array of keys, so that a batch finds its
features by binary search and no dictionary has to be saved.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.layers.phrases import UNKNOWN_WORD
from emhrnn.shapes import Float32, Int64

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
    document = batch.document_of_sentence[batch.sentence_of_word]
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
