"""Ragged sequences in time-major order, longest first, so that one matrix product serves one time step of all of them.

    flat      a0 a1 | b0 b1 b2 | c0          offsets 0 2 5 6
    packed    b0 a0 c0 | b1 a1 | b2          batch_sizes 3 2 1; sequences b a c

The rows of step t are contiguous, and row r of step t continues row r of step t - 1.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Packing:
    """The order in which a recurrent layer reads sequences. The torch layers use the packed order; the native ones walk
    the flat rows by `offsets` and `sequences`, so what only one of them needs is computed when it is asked for."""

    offsets: Int64[Tensor, " sequences_plus_1"]
    reverse: bool

    @property
    def rows(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def lengths(self) -> Int64[Tensor, " sequences"]:
        return self.offsets.diff()

    @cached_property
    def sequences(self) -> Int64[Tensor, " sequences"]:
        """Longest first; equal lengths keep their order."""
        return torch.from_numpy(np.argsort(-self.lengths.numpy(), kind="stable"))

    @cached_property
    def batch_sizes(self) -> Int64[Tensor, " steps"]:
        """How many sequences still run at each step."""
        return torch.from_numpy(np.bincount(self._steps, minlength=0).astype(np.int64))

    @cached_property
    def inverse(self) -> Int64[Tensor, " rows"]:
        """flat[i] = packed[inverse[i]]"""
        rank = np.empty(len(self.sequences), dtype=np.int64)
        rank[self.sequences.numpy()] = np.arange(len(rank))
        starts = np.cumsum(self.batch_sizes.numpy()) - self.batch_sizes.numpy()
        return torch.from_numpy(starts[self._steps] + np.repeat(rank, self.lengths.numpy()))

    @cached_property
    def order(self) -> Int64[Tensor, " rows"]:
        """packed[i] = flat[order[i]]"""
        order = np.empty(len(self.inverse), dtype=np.int64)
        order[self.inverse.numpy()] = np.arange(len(order))
        return torch.from_numpy(order)

    @cached_property
    def previous(self) -> Int64[Tensor, " rows_after_the_first_step"]:
        """For each packed row from step 1 on: the packed row of the same sequence one step before."""
        sizes = self.batch_sizes.numpy()
        return torch.from_numpy(np.arange(sizes[:1].sum(), sizes.sum()) - np.repeat(sizes[:-1], sizes[1:]))

    @cached_property
    def _steps(self) -> Int64[np.ndarray, " rows"]:
        """The time step at which each flat row is read."""
        lengths, starts = self.lengths.numpy(), self.offsets.numpy()[:-1]
        steps: np.ndarray = np.arange(lengths.sum()) - np.repeat(starts, lengths)
        if self.reverse:
            steps = np.repeat(lengths - 1, lengths) - steps
        return steps


def pack(offsets: Int64[np.ndarray, " sequences_plus_1"], *, reverse: bool = False) -> Packing:
    """Sequence i is rows offsets[i] : offsets[i + 1], offsets[0] = 0; `reverse` reads every sequence from its end."""
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise IndexError("offsets must rise from 0 to the number of rows")
    return Packing(torch.from_numpy(np.ascontiguousarray(offsets)), reverse)
