"""Ragged sequences in time-major order, longest first, so that one matrix product serves one time step of all of them.

    flat      a0 a1 | b0 b1 b2 | c0          offsets 0 2 5 6
    packed    b0 a0 c0 | b1 a1 | b2          batch_sizes 3 2 1; sequences b a c

The rows of step t are contiguous, and row r of step t continues row r of step t - 1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from emhrnn.shapes import Int64


@dataclass(frozen=True, eq=False)
class Order:
    """The order in which a recurrence goes through sequences. Sequence i is rows offsets[i] : offsets[i + 1];
    `reverse` reads every sequence from its end. Raises an IndexError unless offsets rise from 0."""

    offsets: Int64[np.ndarray, " sequences_plus_1"]
    reverse: bool = False

    def __post_init__(self) -> None:
        if self.offsets[0] != 0 or (self.lengths < 0).any():
            raise IndexError("offsets must rise from 0 to the number of rows")

    @property
    def n_rows(self) -> int:
        """Of all sequences."""
        return int(self.offsets[-1])

    @property
    def native(self) -> tuple[int, Int64[np.ndarray, " n_plus_1"], Int64[np.ndarray, " n"], int]:
        """As the kernels take it: the number of sequences, their offsets, the order and the direction."""
        return len(self.lengths), np.ascontiguousarray(self.offsets), self.sequences, int(self.reverse)

    @cached_property
    def lengths(self) -> Int64[np.ndarray, " sequences"]:
        return np.diff(self.offsets)

    @cached_property
    def sequences(self) -> Int64[np.ndarray, " sequences"]:
        """Longest first; equal lengths keep their order."""
        return np.argsort(-self.lengths, kind="stable")

    @cached_property
    def batch_sizes(self) -> Int64[np.ndarray, " steps"]:
        """How many sequences still run at each step."""
        return np.bincount(self._steps, minlength=0).astype(np.int64)

    @cached_property
    def starts(self) -> list[int]:
        """First packed row of each step, and their end."""
        return [0, *np.cumsum(self.batch_sizes).tolist()]

    @cached_property
    def inverse(self) -> Int64[np.ndarray, " rows"]:
        """flat[i] = packed[inverse[i]]"""
        rank = np.empty(len(self.sequences), dtype=np.int64)
        rank[self.sequences] = np.arange(len(rank))
        inverse: np.ndarray = np.array(self.starts)[self._steps] + np.repeat(rank, self.lengths)
        return inverse

    @cached_property
    def rows(self) -> Int64[np.ndarray, " rows"]:
        """packed[i] = flat[rows[i]]"""
        rows = np.empty(len(self.inverse), dtype=np.int64)
        rows[self.inverse] = np.arange(len(rows))
        return rows

    @cached_property
    def previous(self) -> Int64[np.ndarray, " rows_after_the_first_step"]:
        """For each packed row from step 1 on: the packed row of the same sequence one step before."""
        sizes = self.batch_sizes
        previous: np.ndarray = np.arange(sizes[:1].sum(), sizes.sum()) - np.repeat(sizes[:-1], sizes[1:])
        return previous

    @cached_property
    def _steps(self) -> Int64[np.ndarray, " rows"]:
        """The time step at which each flat row is read."""
        steps: np.ndarray = np.arange(self.lengths.sum()) - np.repeat(self.offsets[:-1], self.lengths)
        if self.reverse:
            steps = np.repeat(self.lengths - 1, self.lengths) - steps
        return steps
