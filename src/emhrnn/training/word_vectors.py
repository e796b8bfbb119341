"""Word vectors from the training documents alone, for a model whose vectors stay as they begin.

    c(w, v)   how often v stands within WINDOW words of w in a sentence, each time divided by their distance
    m(w, v)   max(0, log c(w, v) - log c(w) - log p(v)), p(v) ~ c(v)^SMOOTHING: positive pointwise mutual information
    x_w       row w of U sqrt(S), where U S V^T is the truncated singular value decomposition of m

as Levy, Goldberg and Dagan have it (TACL 2015). The contexts v are the most frequent words. Of a large
corpus, documents from all over it are read.
"""

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.layers.phrases import UNKNOWN_WORD
from emhrnn.shapes import Float32

WINDOW, SMOOTHING = 4, 0.75
CONTEXTS = 3_000
MOST_WORDS = 4_000_000  # that are read
AT_ONCE = 200_000  # words
ITERATIONS = 2  # of the decomposition
SPREAD = 0.4  # standard deviation of all numbers, about that of GloVe


def learned_vectors(corpus: Corpus, size: int, seed: int) -> Float32[np.ndarray, "vocabulary size"]:
    """One vector for each word of the vocabulary, which has the most frequent words first; 0 for a word that has no
    neighbours. The same for any number of threads."""
    vectors = np.zeros((len(corpus.vocabulary), size), dtype=np.float32)
    information = _information(_cooccurrences(corpus))
    rank = min(size, *information.shape)
    if not information.nnz:
        return vectors
    with threadpool_limits(1):
        u, s, _ = randomized_svd(information, rank, n_iter=ITERATIONS, random_state=seed % 2**32)
    vectors[:, :rank] = u * np.sqrt(s)
    vectors *= SPREAD / vectors.std()
    return vectors


def _cooccurrences(corpus: Corpus) -> csr_array:
    """c, (vocabulary, contexts)."""
    mean_length = corpus.lengths.mean()
    sample = corpus.select(corpus.spread(min(len(corpus), int(MOST_WORDS / mean_length) + 1)))
    shape = len(corpus.vocabulary), min(CONTEXTS, len(corpus.vocabulary))
    total = csr_array(shape, dtype=np.float32)
    for rows in BatchPlan(sample.lengths, words=AT_ONCE).in_order():
        total += _of_batch(sample.batch(rows), shape)
    return total


def _of_batch(batch: Batch, shape: tuple[int, int]) -> csr_array:
    words, contexts, values = [], [], []
    for distance in range(1, WINDOW + 1):
        near = batch.sentence_of_word[:-distance] == batch.sentence_of_word[distance:]
        one, other = batch.words[:-distance][near], batch.words[distance:][near]
        for word, context in ((one, other), (other, one)):
            counted = (word != UNKNOWN_WORD) & (context != UNKNOWN_WORD) & (context < shape[1])
            words.append(word[counted])
            contexts.append(context[counted])
            values.append(np.full(len(words[-1]), 1 / distance, dtype=np.float32))
    places = np.concatenate(words), np.concatenate(contexts)
    return coo_array((np.concatenate(values), places), shape=shape).tocsr()  # which adds up what stands in one place


def _information(counts: csr_array) -> csr_array:
    """m, without what is 0."""
    total = counts.tocoo()
    word, context = total.coords
    of_words, of_contexts = counts.sum(axis=1), counts.sum(axis=0) ** SMOOTHING
    expected = of_words[word] * (of_contexts[context] / of_contexts.sum())
    values = np.log(total.data / expected)
    more = values > 0
    return csr_array((values[more], (word[more], context[more])), shape=counts.shape)
