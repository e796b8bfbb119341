"""Near-duplicates: documents that share most of their runs of three words, found by MinHash in time that is linear in
the data. Candidates agree in all rows of one of the bands of their signatures; their overlap is then computed exactly.

    Jaccard of A and B = |A and B| / |A or B|, of the sets of their runs of WIDTH words
"""

from collections import defaultdict

import numpy as np
from jaxtyping import Int64

from emhrnn.corpus import Corpus

WIDTH = 3  # words of a run
BANDS, ROWS = 16, 4  # of a signature: pairs with a Jaccard of 0.8 are missed once in 4,000
LEAST = 0.7  # Jaccard of near-duplicates
MOST_COMPARED = 20  # documents of a bucket that each is compared with, so that time stays bounded
PRIME = (1 << 31) - 1


def near_duplicates(corpus: Corpus, *, least: float = LEAST) -> list[tuple[int, ...]]:
    """Groups of two documents or more, by their numbers; equal documents are near-duplicates, too. Documents with fewer
    words than a run count as duplicates only where they are equal."""
    generator = np.random.default_rng(0)
    slopes, shifts = generator.integers(1, PRIME, (2, BANDS * ROWS, 1))
    runs = [_runs(corpus.batch(np.array([i])).words) for i in range(len(corpus))]
    parent = list(range(len(corpus)))
    buckets: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for i, hashes in enumerate(runs):
        signature = ((slopes * hashes + shifts) % PRIME).min(axis=1).reshape(BANDS, ROWS)
        for band in range(BANDS):
            bucket = buckets[band, signature[band].tobytes()]
            for other in bucket[:MOST_COMPARED]:
                if _root(parent, i) != _root(parent, other) and _jaccard(hashes, runs[other]) >= least:
                    parent[_root(parent, i)] = _root(parent, other)
            bucket.append(i)
    groups: dict[int, list[int]] = defaultdict(list)
    for i in range(len(corpus)):
        groups[_root(parent, i)].append(i)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def _runs(words: Int64[np.ndarray, " words"]) -> Int64[np.ndarray, " runs"]:
    """The distinct runs of words as numbers below PRIME; a short document is one run."""
    width = min(WIDTH, len(words))
    value = np.zeros(len(words) - width + 1, dtype=np.int64)
    for k in range(width):
        value = (value * 1_000_003 + words[k : len(words) - width + 1 + k] + 1) % PRIME
    return np.unique(value)


def _jaccard(one: Int64[np.ndarray, " n"], other: Int64[np.ndarray, " m"]) -> float:
    both = len(np.intersect1d(one, other, assume_unique=True))
    return both / (len(one) + len(other) - both)


def _root(parent: list[int], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i
