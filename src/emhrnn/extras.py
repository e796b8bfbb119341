"""Libraries that not every installation has, and that are imported when they are first used."""

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from emhrnn.errors import EmhrnnError, ExtraError


def installed(library: str) -> bool:
    """Whether a library can be imported.

    Raises:
        ConfigError: too little memory is allowed for it (emhrnn.cli).
    """
    try:
        return find_spec(library) is not None
    except EmhrnnError:
        raise
    except (ImportError, ValueError):  # it is blocked, or was imported in an odd way
        return library in sys.modules and sys.modules[library] is not None


def need(library: str, what: str, extra: str = "train") -> None:
    """Raise an ExtraError where a library is not installed: `what` needs it, and an `extra` of the package has it."""
    if not installed(library):
        raise ExtraError(f"{what} needs {library}, which is not installed; pip install 'emhrnn[{extra}]'")


class LateModule:
    """A module that is imported at its first use."""

    def __init__(self, name: str, what: str) -> None:
        """`what` needs it."""
        self._name, self._what = name, what

    def __getattr__(self, name: str) -> Any:
        need(self._name.partition(".")[0], self._what)
        return getattr(import_module(self._name), name)


pyarrow: Any = LateModule("pyarrow", "Parquet, Arrow and zstd")
parquet: Any = LateModule("pyarrow.parquet", "Parquet")
