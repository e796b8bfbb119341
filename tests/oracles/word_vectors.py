"""Word vectors of documents, pair by pair and by a dense decomposition."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np


def information(documents: Sequence[Sequence[Sequence[int]]], words: int, contexts: int, *, window: int) -> np.ndarray:
    """m (words, contexts) of documents of sentences of word ids; 0 is no word."""
    counts: Counter[tuple[int, int]] = Counter()
    for sentence in (sentence for document in documents for sentence in document):
        for i, word in enumerate(sentence):
            for j, context in enumerate(sentence):
                if 0 < abs(i - j) <= window and word and context and context < contexts:
                    counts[word, context] += 1 / abs(i - j)
    of_words, of_contexts = Counter(), Counter()
    for (word, context), count in counts.items():
        of_words[word] += count
        of_contexts[context] += count
    total = sum(count**0.75 for count in of_contexts.values())
    m = np.zeros((words, contexts))
    for (word, context), count in counts.items():
        expected = of_words[word] * of_contexts[context] ** 0.75 / total
        m[word, context] = max(0.0, math.log(count / expected))
    return m


def products(m: np.ndarray) -> np.ndarray:
    """x x^T of vectors of full rank, which does not depend on their signs and order; the largest is 1."""
    u, s, _ = np.linalg.svd(m, full_matrices=False)
    result = (u * s) @ u.T
    return result / np.abs(result).max()
