r"""N-grams as the features of a linear classifier: every run of neighbouring words within a sentence. A run with an
unknown word is no n-gram.

    the room was great      the, room, was, great, the room, room was, was great, the room was, room was great

An n-gram is one integer: a word is its id w, and each further word turns key k into (k + 1) V + w. Keys of different
n-grams differ, and shorter ones are smaller. The features are a sorted array of keys, so that a batch finds its
features by binary search and no dictionary has to be saved.
"""

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int64
from scipy import sparse

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.layers.phrases import UNKNOWN_WORD

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


def ngram_counts(
    batch: Batch, keys: Int64[np.ndarray, " features"], *, vocabulary: int, longest: int
) -> sparse.csr_matrix:
    """(documents, features), float32: how often each document has each n-gram of the sorted `keys`."""
    document, key = ngrams_of(batch, vocabulary, longest)
    place = np.searchsorted(keys, key)
    known = place < len(keys)
    known[known] = keys[place[known]] == key[known]
    rows, columns = document[known], place[known]
    counts = sparse.csr_matrix(
        (np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(batch.n_documents, len(keys))
    )
    counts.sum_duplicates()
    return counts


def merged_counts(
    keys: list[np.ndarray], counts: list[np.ndarray]
) -> tuple[Int64[np.ndarray, " distinct"], Int64[np.ndarray, " distinct"]]:
    """The distinct keys of several arrays, sorted, and the sum of the counts of each."""
    distinct, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    return distinct, np.bincount(inverse, np.concatenate(counts), len(distinct)).astype(np.int64)
