"""Candidate phrases and what they say, from the words themselves: tuples, dictionaries and loops, no keys, no arrays.

A candidate (t, k - 1) is the phrase of k words that ends at word t of a batch; words 0 are unknown.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

Phrase = tuple[int, ...]


def candidates(words: Sequence[int], sentence_offsets: Sequence[int], K: int) -> list[list[Phrase | None]]:
    """The words of each candidate (words, K); None where it begins before its sentence or has an unknown word."""
    result: list[list[Phrase | None]] = []
    for begin, end in pairwise(sentence_offsets):
        for t in range(begin, end):
            phrases = [tuple(words[t - k + 1 : t + 1]) if t - k + 1 >= begin else None for k in range(1, K + 1)]
            result.append([None if phrase is None or 0 in phrase else phrase for phrase in phrases])
    return result


def suffixes(phrase: Phrase) -> list[Phrase]:
    """The phrases that it ends with, and itself."""
    return [phrase[i:] for i in range(len(phrase))]


def found(phrase: Phrase | None, seen: Collection[Phrase]) -> bool:
    return phrase is not None and all(part in seen for part in suffixes(phrase))


def repeats(
    values: list[list], word_offsets: Sequence[int], none: object = None
) -> tuple[list[list[int]], list[list[bool]]]:
    """How often each candidate's value is in its document, and whether it is the first there; both (words, K)."""
    times, first = [], []
    for begin, end in pairwise(word_offsets):
        counts = Counter(value for word in values[begin:end] for value in word)
        before = {none}
        for word in values[begin:end]:
            times.append([0 if value == none else counts[value] for value in word])
            first.append([])
            for value in word:
                first[-1].append(value not in before)
                before.add(value)
    return times, first


def log_ratios(
    by_class: Sequence[float], documents: float, shares: Sequence[float], m: float, *, several: bool
) -> list[float]:
    """r of one phrase: by_class[y] of `documents` documents that have it are of class y, a share p_y of all are."""
    if several:
        return [
            math.log((c + m * p) / (documents - c + m * (1 - p))) - math.log(p / (1 - p))
            for c, p in zip(by_class, shares, strict=True)
        ]
    logs = [math.log((c + m * p) / p) for c, p in zip(by_class, shares, strict=True)]
    return [x - sum(logs) / len(logs) for x in logs]


def bucket(documents: float, buckets: int) -> int:
    """0 for fewer than 2 documents, 1 for fewer than 4, 2 for fewer than 8, and so on; the last one for all others."""
    return next((b for b in range(buckets) if documents < 2 ** (b + 1)), buckets - 1)


def mixed(r: Sequence[float], mixing: np.ndarray | None) -> list[float]:
    """r (1 + mixing): what the ratios of the other classes add to each."""
    if mixing is None:
        return list(r)
    return [own + sum(other * mixing[x, y] for x, other in enumerate(r)) for y, own in enumerate(r)]


def seen_scores(
    rows: np.ndarray,  # (words, K), -1: none
    weights: np.ndarray,  # (words, K)
    word_offsets: Sequence[int],
    table: np.ndarray,  # (rows, classes)
    scale: np.ndarray,  # (K, buckets)
    by_class: np.ndarray,  # (rows, classes)
    documents: np.ndarray,  # (rows)
    shares: Sequence[float],
    m: float,
    *,
    several: bool,
    mixing: np.ndarray | None = None,  # (classes, classes)
    own_labels: np.ndarray | None = None,  # (documents, classes)
    own_weights: np.ndarray | None = None,  # (documents)
) -> np.ndarray:
    """weight * (scale[k, bucket] * r (1 + mixing) + table[row]): (words, K, classes)."""
    K, C = rows.shape[1], len(shares)
    scores = np.zeros((*rows.shape, C))
    for d, (begin, end) in enumerate(pairwise(word_offsets)):
        for t in range(begin, end):
            for k in range(K):
                row = int(rows[t, k])
                if row < 0:
                    continue
                count, number = by_class[row].tolist(), float(documents[row])
                if own_labels is not None and own_weights is not None:
                    count = [c - own for c, own in zip(count, own_labels[d].tolist(), strict=True)]
                    number -= float(own_weights[d])
                r = mixed(log_ratios(count, number, shares, m, several=several), mixing)
                for y in range(C):
                    s = scale[k, bucket(number, scale.shape[1])]
                    scores[t, k, y] = weights[t, k] * (s * r[y] + table[row, y])
    return scores


def gathered(table: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """weight * table[row]: (words, K, classes)."""
    scores = np.zeros((*rows.shape, table.shape[1]))
    for t, k in np.ndindex(*rows.shape):
        if rows[t, k] >= 0:
            scores[t, k] = weights[t, k] * table[rows[t, k]]
    return scores


def encoder_scores(
    projection: np.ndarray,  # (distinct, K, hidden)
    bias: np.ndarray,  # (K, hidden)
    output: np.ndarray,  # (hidden, classes)
    places: Sequence[int],
    sentence_offsets: Sequence[int],
) -> np.ndarray:
    """output^T tanh(bias + sum over the words of a phrase of their projections): (words, K, classes)."""
    K = len(bias)
    scores = np.zeros((len(places), K, output.shape[1]))
    for begin, end in pairwise(sentence_offsets):
        for t in range(begin, end):
            for k in range(min(K, t - begin + 1)):
                total = sum(projection[places[t - j], j] for j in range(k + 1))
                scores[t, k] = np.tanh(bias[k] + total) @ output
    return scores
