"""Is one system better than another, or was it luck? Paired tests on the same test documents.

Both see only which documents each system got right: a (seeds, documents) table of true and false per system, one row
for each training seed.

- `paired_bootstrap` resamples the documents (the same for both systems) and the seeds (of each system, independently),
  so its p-value covers the variance of the test set and of training. With one seed it covers the documents alone.
  Draws of n seeds vary less than seeds do, by (n - 1) / n in variance; their deviations are widened to make up for it.
- `mcnemar` is exact, for one seed of each. For several, the p-values of the pairs of seeds are combined by their median
  order statistic (Rüger 1978), which holds however much they depend on each other. It is about these runs: the variance
  of training is not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from emhrnn.shapes import Bool, Float

SAMPLES = 10_000
TIE = 1e-12  # sums of thirds are not exactly zero
LEVEL = 0.05  # of a test; intervals hold 1 - LEVEL


@dataclass(frozen=True)
class Difference:
    """Mean accuracy of one system minus that of another."""

    difference: float
    low: float  # the bootstrap's 95 % interval
    high: float
    p: float


def paired_bootstrap(
    ours: Bool[np.ndarray, "seeds documents"],
    theirs: Bool[np.ndarray, "other_seeds documents"],
    *,
    samples: int = SAMPLES,
) -> Difference:
    """Two-sided p: twice the smaller share of resampled differences on either side of zero; at least 2 / samples."""
    drawn = _resampled_means([ours, theirs], [1.0, -1.0], samples)
    below, above = (drawn < TIE).sum(), (drawn > -TIE).sum()
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2])
    p = min(1.0, 2 * float(min(below, above) + 1) / (samples + 1))
    return Difference(float(ours.mean() - theirs.mean()), float(low), float(high), p)


def accuracy_interval(right: Bool[np.ndarray, "seeds documents"]) -> tuple[float, float]:
    """Where the accuracy would lie in 95 % of other test sets of this kind and other seeds."""
    drawn = _resampled_means([right], [1.0], SAMPLES)
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)


def mcnemar(ours: Bool[np.ndarray, " documents"], theirs: Bool[np.ndarray, " documents"]) -> float:
    """Two-sided exact p: of the documents that only one of the two got right, half should be ours."""
    wins, losses = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return min(1.0, 2 * float(binom.cdf(min(wins, losses), wins + losses, 0.5)))


def mcnemar_of_seeds(
    ours: Bool[np.ndarray, "seeds documents"], theirs: Bool[np.ndarray, "other_seeds documents"]
) -> float:
    """McNemar's p of each pair of seeds (the first of one with the first of the other, and so on), combined."""
    return combine([mcnemar(a, b) for a, b in zip(ours, theirs, strict=False)])


def combine(ps: Sequence[float]) -> float:
    """One p-value of several about the same question, whatever their dependence: K/k times the k-th smallest of K,
    with k the middle."""
    k = (len(ps) + 1) // 2
    return min(1.0, len(ps) / k * sorted(ps)[k - 1])


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p-values of a family, each of which may then be held against the level alone."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected, largest = [0.0] * len(ps), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[i]))
        corrected[i] = largest
    return corrected


def _resampled_means(
    tables: Sequence[Bool[np.ndarray, "_ documents"]],
    signs: Sequence[float],
    samples: int,
) -> Float[np.ndarray, " samples"]:
    """The signed sum of the tables' means, in resamples of documents and of each table's seeds, the same at every call.

    Documents with the same pattern of right and wrong are alike, so only the count of each pattern is drawn: the same
    distribution as drawing documents one by one, in time that does not grow with their number.
    """
    generator = np.random.default_rng(0)
    patterns, counts = np.unique(np.concatenate(tables), axis=1, return_counts=True)  # (all seeds, patterns)
    documents = int(counts.sum())
    drawn = generator.multinomial(documents, counts / documents, size=samples)  # (samples, patterns)
    weights = np.concatenate(  # (samples, all seeds)
        [sign * _seed_weights(len(table), samples, generator) for table, sign in zip(tables, signs, strict=True)],
        axis=1,
    )
    means: np.ndarray = ((drawn @ patterns.T) * weights).sum(axis=1) / documents
    return means


def _seed_weights(seeds: int, samples: int, generator: np.random.Generator) -> Float[np.ndarray, "samples seeds"]:
    """How often each seed is drawn, as a share whose deviations from the mean are widened."""
    drawn = generator.multinomial(seeds, np.full(seeds, 1 / seeds), size=samples)
    widened = (seeds / max(seeds - 1, 1)) ** 0.5 * (drawn - 1)
    weights: np.ndarray = (1 + widened) / seeds
    return weights


def p_value(p: float | None) -> str:
    """As tables show it."""
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"
