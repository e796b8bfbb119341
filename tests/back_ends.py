"""What layers and models are tested on: the native kernels and their plain twins, and any number of threads."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from emhrnn import cores
from emhrnn.layers.native import kernels, native_kernels


@contextmanager
def on_kernels(native: bool) -> Iterator[None]:
    """The block runs on the native kernels, or without them."""
    with native_kernels(native):
        if native and kernels() is None:
            pytest.skip("no C++ compiler here, so there is no native back end")
        yield


@contextmanager
def threads_kept() -> Iterator[None]:
    """Training sets the threads of this process, which other tests need as they were."""
    before = cores.threads()
    try:
        yield
    finally:
        cores.set_threads(before)


def check_threads_change_no_bit(run: Callable[[], Iterable[Any]], counts: tuple[int, ...] = (1, 2)) -> None:
    """The native kernels give the same arrays, or tensors, with each of these numbers of threads."""
    results = []
    with on_kernels(True), threads_kept():
        for count in counts:
            cores.set_threads(count)
            results.append([np.asarray(part) for part in run()])
    for other in results[1:]:
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(results[0], other, strict=True))
