"""Scores of words and pairs of neighbours, one document, in Python loops."""

from torch import Tensor


def document_scores(ngrams, sentences: list[list[int]]) -> Tensor:
    """Of each class: the scores of all words and pairs by the root of the number of words."""
    table, total, n = ngrams.table, 0.0, sum(map(len, sentences))
    buckets = table[ngrams.vocabulary :]
    for words in sentences:
        for t, word in enumerate(words):
            total = total + table[word]
            if t > 0:
                total = total + buckets[(words[t - 1] * 2654435761 + word * 40503) % len(buckets)]
    return total / n**0.5
