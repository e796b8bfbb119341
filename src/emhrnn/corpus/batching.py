"""Batches of documents of similar length, in a new order each epoch.

Rows are shuffled and cut into pools of some dozens of batches; a pool is sorted by length and cut into batches; the
batches are shuffled. So a batch wastes little on length differences, and yet no two epochs have the same batches.

    plan = BatchPlan(corpus.lengths, words=8000, seed=7)
    for rows in plan.epoch(0): ...                 # the same rows in the same order whenever epoch 0 is asked for
    for rows in plan.epoch(3, start=120): ...      # to resume: the epoch and the batch index are all there is to keep
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Int64

from emhrnn.corpus.ragged import offsets_of
from emhrnn.errors import ConfigError

DEFAULT_WORDS = 8000
POOL_BATCHES = 50


class BatchPlan:
    """Every row exactly once per epoch, either `documents` rows a batch (the paper: 64) or about `words` words.

    A batch by words never exceeds its budget, except that a document larger than the budget is a batch of its own.
    """

    def __init__(
        self,
        lengths: Int64[np.ndarray, " rows"],
        *,
        documents: int | None = None,
        words: int | None = None,
        seed: int = 0,
    ) -> None:
        if documents is not None and words is not None:
            raise ConfigError("batches are cut by documents or by words, both were given; give one of them")
        for name, size in (("documents", documents), ("words", words)):
            if size is not None and size < 1:
                raise ConfigError(f"a batch of {size} {name} is not possible; give 1 or more")
        self.lengths = lengths
        self.documents = documents
        self.words = (words or DEFAULT_WORDS) if documents is None else None
        self.seed = seed

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Int64[np.ndarray, " documents"]]:
        """The epoch's batches of row numbers, from batch `start` on."""
        yield from self.batches(np.random.default_rng([self.seed, epoch]))[start:]

    def batches(self, generator: np.random.Generator) -> list[Int64[np.ndarray, " documents"]]:
        """All rows once, in batches, in an order drawn from the generator."""
        order = generator.permutation(len(self.lengths))
        pools = np.array_split(order, max(1, round(self._expected_batches() / POOL_BATCHES)))
        batches = [batch for pool in pools for batch in self._cut(pool)]
        return [batches[i] for i in generator.permutation(len(batches))]

    def in_order(self) -> list[Int64[np.ndarray, " documents"]]:
        """All rows once, sorted by length, without chance: for evaluation, where the order does not matter."""
        return self._cut(np.arange(len(self.lengths)))

    def _expected_batches(self) -> float:
        if self.documents is not None:
            return len(self.lengths) / self.documents
        assert self.words is not None
        return float(self.lengths.sum()) / self.words

    def _cut(self, rows: Int64[np.ndarray, " rows"]) -> list[Int64[np.ndarray, " documents"]]:
        rows = rows[np.argsort(self.lengths[rows], kind="stable")]
        if self.documents is not None:
            cuts = list(range(self.documents, len(rows), self.documents))
        else:
            cuts = self._word_cuts(rows)
        return np.split(rows, cuts) if len(rows) else []

    def _word_cuts(self, rows: Int64[np.ndarray, " rows"]) -> list[int]:
        """One step per batch: the furthest row that still fits into the budget."""
        assert self.words is not None
        ends = offsets_of(self.lengths[rows])
        cuts: list[int] = []
        first = 0
        while True:
            fits = int(np.searchsorted(ends, ends[first] + self.words, side="right")) - 1
            first = max(fits, first + 1)
            if first >= len(rows):
                return cuts
            cuts.append(first)
