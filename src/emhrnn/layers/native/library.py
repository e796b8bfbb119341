"""The native kernels on NumPy arrays and torch tensors. Each call releases Python's lock.

The C++ side trusts its arguments, so whoever calls it checks offsets, indices and widths first: a wrong one is an
IndexError, not a crash.
"""

import ctypes
from typing import Any, Literal

import numpy as np

CellName = Literal["lstm", "gru"]
CELLS: dict[CellName, int] = {"lstm": 0, "gru": 1}  # as recurrent.h numbers them


class Kernels:
    """Arrays, or tensors on the CPU, are float32, int64, int32 or bool, as the C++ functions declare them."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.padded_columns = library.padded_columns
        self.padded_columns.argtypes = [ctypes.c_int64]
        self.padded_columns.restype = ctypes.c_int64

    def call(self, name: str, *arguments: Any) -> None:
        """A function of the library, with whole numbers, None for a null pointer, and contiguous arrays. Raises a
        ValueError for an array with gaps."""
        getattr(self.library, name)(*(_argument(name, argument) for argument in arguments))


def _argument(name: str, value: Any) -> Any:
    if value is None or isinstance(value, int):
        return None if value is None else ctypes.c_int64(value)
    tensor = hasattr(value, "data_ptr")
    if not (value.is_contiguous() if tensor else value.flags.c_contiguous):
        raise ValueError(f"{name} needs contiguous arrays")
    return ctypes.c_void_p(value.data_ptr() if tensor else value.ctypes.data)


def check_index(index: Any, size: int, *, least: int = 0) -> None:
    """Raises an IndexError unless all are row numbers of an array with `size` rows, or `least`, for none."""
    numbers = np.asarray(index)
    if numbers.size:
        low, high = int(numbers.min()), int(numbers.max())
        if low < least or high >= size:
            raise IndexError(f"row numbers from {low} to {high} for {size} rows, {least} at least")


def check_offsets(offsets: Any, rows: int) -> None:
    """Raises an IndexError unless offsets rise from 0 to the number of rows."""
    numbers = np.asarray(offsets)
    if not len(numbers) or numbers[0] != 0 or numbers[-1] != rows or (np.diff(numbers) < 0).any():
        raise IndexError(f"offsets must rise from 0 to {rows}, the number of rows")


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    """Raises an IndexError for an array, or tensor, of another shape."""
    if tuple(array.shape) != tuple(shape):
        raise IndexError(f"{name} of shape {tuple(array.shape)}; it must be {tuple(shape)}")
