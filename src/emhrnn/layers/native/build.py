"""How the native code of the layers and of the E-step is compiled."""

import ctypes
from pathlib import Path

from emhrnn.compiling import CAPABILITY_FLAGS, capability, try_library

FLAGS = ("-pthread", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")


def try_numeric_library(source: Path, *, instead: str) -> ctypes.CDLL | None:
    """The source, compiled for the vector instructions of this CPU, or None and one log line: what serves `instead`."""
    return try_library(source, flags=(*FLAGS, *CAPABILITY_FLAGS[capability()]), instead=instead)
