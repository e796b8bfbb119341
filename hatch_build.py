"""Compiles the C++ of the package into the wheel, for a CPU with AVX-512, with AVX2, and without: one wheel for all
Pythons of a platform, since the libraries are called through a C interface.

Without a C++ compiler, or with EMHRNN_BUILD=0, the wheel is pure Python, and compiles on first use. So is an editable
installation.
"""

import os
import platform
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = {"text/stretches.cpp": False, "layers/native/kernels.cpp": True, "paper/em/plan.cpp": True}  # numeric?
STATIC = {"linux": ("-static-libstdc++", "-static-libgcc")}  # so that the wheel asks only for the C library


class Kernels(BuildHookInterface):
    """Adds the libraries, `emhrnn/compiled/*`, to a wheel, and the platform to its name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "editable" or os.environ.get("EMHRNN_BUILD", "1") == "0":
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        try:
            from emhrnn import compiler
        finally:
            sys.path.pop(0)
        self._scratch = tempfile.TemporaryDirectory(prefix="emhrnn-build-")
        try:
            libraries = compile_all(compiler, Path(self.root, "src", "emhrnn"), Path(self._scratch.name))
        except compiler.BuildError as error:
            self.app.display_warning(f"a pure Python wheel: {error}")
            return
        build_data["force_include"].update({str(path): f"emhrnn/compiled/{path.name}" for path in libraries})
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling when the wheel is there."""
        if hasattr(self, "_scratch"):
            self._scratch.cleanup()


def compile_all(compiler: Any, package: Path, folder: Path) -> list[Path]:
    """The libraries, by the module emhrnn.compiler."""
    command, static = compiler.find_compiler(), STATIC.get(sys.platform, ())
    choice = sys.platform == "linux" and platform.machine() == "x86_64"  # where compiler.capability asks the CPU
    libraries = []
    for name, numeric in SOURCES.items():
        source = package / name
        for kind in compiler.CAPABILITY_FLAGS if numeric and choice else ("DEFAULT",):
            library = folder / compiler.shipped_name(source, kind)
            flags = (*compiler.FLAGS, *(compiler.flags_of(kind) if numeric else ()), *static)
            compiler.compile_library(command, source, library, flags)
            libraries.append(library)
    return libraries
