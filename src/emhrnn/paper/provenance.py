"""Where figures come from: command, commit and shape of the machine. No names of machines, users or folders."""

import platform
import subprocess
from pathlib import Path

import torch

from emhrnn.cores import cores
from emhrnn.version import __version__


def commit() -> str:
    """Of the checkout that this package is in, `+` when it has changes; else the version that is installed."""
    here = Path(__file__).resolve().parent
    try:
        head = _git(here, "rev-parse", "--short", "HEAD")
        return head + ("+" if _git(here, "status", "--porcelain", "--untracked-files=no", ".") else "")
    except (OSError, subprocess.SubprocessError):  # a busy machine may be slow to answer: no reason to lose a run
        return f"version {__version__}"


def machine() -> str:
    """For example `2 cores, x86-64 AVX2`."""
    count = cores()
    capability = torch.backends.cpu.get_cpu_capability()  # what the kernels of torch use here
    return f"{count} core{'s' * (count != 1)}, {platform.machine().replace('_', '-')} {capability}"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
