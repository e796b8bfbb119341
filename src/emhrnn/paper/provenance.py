"""Where figures come from: command, commit and shape of the machine. No names of machines, users or folders."""

import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from emhrnn.cores import cores
from emhrnn.version import __version__

_FOLDERS = re.compile(r"[^=,\[\]]*/")  # in a command: where files were is nobody's business
NAMING = ("--models", "--reference", "--rows")  # options that name rows


def making(**more: Any) -> dict[str, Any]:
    """How a report was made: command, commit, machine, and what else there is to say."""
    return {"command": told_command(), "commit": commit(), "machine": machine(), **more}


def told_command(words: Sequence[str] | None = None) -> str:
    """The command of this process, without the folders that files were in. The name of a row may hold a slash; of its
    settings, paths alone do."""
    told, option = ["emhrnn"], ""
    for word in sys.argv[1:] if words is None else words:
        name, equals, _ = word.partition("=")
        of_rows = option in NAMING or (equals and name in NAMING)
        if word != "--report":
            told.append(
                re.sub(r"\[[^\]]*\]", lambda settings: _FOLDERS.sub("", settings[0]), word)
                if of_rows
                else _FOLDERS.sub("", word)
            )
        option = word
    return shlex.join(told)


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
