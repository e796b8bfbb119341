"""The time-major order of ragged sequences (order.py) as tensors, for the torch layers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from emhrnn.layers.order import Order


@dataclass(frozen=True, eq=False)
class Packing:
    """The order in which a recurrent layer reads sequences. The torch layers use the packed order; the native ones walk
    the flat rows by `offsets` and `sequences`, so what only one of them needs is computed when it is asked for."""

    offsets: Int64[Tensor, " sequences_plus_1"]
    reverse: bool

    @cached_property
    def _order(self) -> Order:
        return Order(self.offsets.numpy(), self.reverse)

    @property
    def rows(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def lengths(self) -> Int64[Tensor, " sequences"]:
        return torch.from_numpy(self._order.lengths)

    @cached_property
    def sequences(self) -> Int64[Tensor, " sequences"]:
        """Longest first; equal lengths keep their order."""
        return torch.from_numpy(self._order.sequences)

    @cached_property
    def batch_sizes(self) -> Int64[Tensor, " steps"]:
        """How many sequences still run at each step."""
        return torch.from_numpy(self._order.batch_sizes)

    @cached_property
    def inverse(self) -> Int64[Tensor, " rows"]:
        """flat[i] = packed[inverse[i]]"""
        return torch.from_numpy(self._order.inverse)

    @cached_property
    def order(self) -> Int64[Tensor, " rows"]:
        """packed[i] = flat[order[i]]"""
        return torch.from_numpy(self._order.rows)

    @cached_property
    def previous(self) -> Int64[Tensor, " rows_after_the_first_step"]:
        """For each packed row from step 1 on: the packed row of the same sequence one step before."""
        return torch.from_numpy(self._order.previous)


def pack(offsets: Int64[np.ndarray, " sequences_plus_1"], *, reverse: bool = False) -> Packing:
    """Sequence i is rows offsets[i] : offsets[i + 1], offsets[0] = 0; `reverse` reads every sequence from its end."""
    if offsets[0] != 0 or (np.diff(offsets) < 0).any():
        raise IndexError("offsets must rise from 0 to the number of rows")
    return Packing(torch.from_numpy(np.ascontiguousarray(offsets)), reverse)
