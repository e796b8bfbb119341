"""The native kernels: a second implementation of the layers, in C++ that is compiled when first used (kernels.cpp).

`kernels()` gives them, or None where they cannot or shall not be used: no C++ compiler, a failed build,
`EMHRNN_NATIVE=0`. Then NumPy and torch serve, which give the same numbers to 1e-5; one log line says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from emhrnn.compiler import try_library
from emhrnn.layers.native.library import Kernels

__all__ = ["Kernels", "kernels", "native_kernels"]

SOURCE = Path(__file__).with_name("kernels.cpp")
_enabled = True


def kernels() -> Kernels | None:
    """The kernels, or None where they cannot or shall not be used."""
    return _load() if _enabled else None


@contextmanager
def native_kernels(enabled: bool) -> Iterator[None]:
    """Turns the kernels on or off for a while, in the whole process: for tests and benchmarks."""
    global _enabled
    before, _enabled = _enabled, enabled
    try:
        yield
    finally:
        _enabled = before


@cache
def _load() -> Kernels | None:
    library = try_library(SOURCE, numeric=True, instead="NumPy and torch do the work")
    return None if library is None else Kernels(library)
