"""The native kernels on NumPy arrays. Each call releases Python's lock.

The C++ side trusts its arguments, so whoever calls it checks offsets, indices and widths first: a wrong one is an
IndexError, not a crash.
"""

import ctypes
from typing import Any, Literal

import numpy as np
from jaxtyping import Int64

CellName = Literal["lstm", "gru"]
CELLS: dict[CellName, int] = {"lstm": 0, "gru": 1}  # as recurrent.h numbers them


class Kernels:
    """Arrays are float32, int64, int32 or bool, as the C++ functions declare them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.padded_columns = library.padded_columns
        self.padded_columns.argtypes = [ctypes.c_int64]
        self.padded_columns.restype = ctypes.c_int64

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the library, with whole numbers, None for a null pointer, and contiguous arrays."""
        getattr(self.library, name)(
            *(
                ctypes.c_int64(argument)
                if isinstance(argument, int)
                else (None if argument is None else ctypes.c_void_p(self.address(name, argument)))
                for argument in arguments
            )
        )

    def address(self, name: str, argument: Any) -> int:
        """Where the numbers of an array begin. Raises a ValueError for an array with gaps."""
        if not argument.flags.c_contiguous:
            raise ValueError(f"{name} needs contiguous arrays")
        return int(argument.ctypes.data)


def check_index(index: Int64[np.ndarray, "..."], size: int, *, least: int = 0) -> None:
    """Raises an IndexError unless all are row numbers of an array with `size` rows, or `least`, for none."""
    if index.size:
        low, high = int(index.min()), int(index.max())
        if low < least or high >= size:
            raise IndexError(f"row numbers from {low} to {high} for {size} rows, {least} at least")


def check_offsets(offsets: Int64[np.ndarray, " m_plus_1"], rows: int) -> None:
    """Raises an IndexError unless offsets rise from 0 to the number of rows."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != rows or (np.diff(offsets) < 0).any():
        raise IndexError(f"offsets must rise from 0 to {rows}, the number of rows")


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raises an IndexError for an array, or tensor, of another shape."""
    if tuple(array.shape) != tuple(shape):
        raise IndexError(f"{name} of shape {tuple(array.shape)}; it must be {tuple(shape)}")
