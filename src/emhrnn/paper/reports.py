"""What reports are made of: tables as Markdown, figures by matplotlib (SVG files that are the same for the same data),
and where the numbers come from: command, commit and shape of the machine. No names of machines, users or folders.
"""

import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from emhrnn.cores import cores
from emhrnn.errors import ConfigError
from emhrnn.files import write_bytes
from emhrnn.version import __version__


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> str:
    """A table; the first `left` columns are text, the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows)) + "\n"


def percent(share: float) -> str:
    """A share of 1 in per cent, without the sign."""
    return f"{100 * share:.1f}"


def plain(text: str) -> str:
    """Text that Markdown takes as it is, on one line."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def check_plots() -> None:
    """Before the work begins: is the extra there?"""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError("figures need matplotlib; install emhrnn[plots], or pass --no-figures") from None


def pyplot() -> Any:
    """matplotlib.pyplot without a window."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "emhrnn"  # the same data, the same file
    from matplotlib import pyplot

    return pyplot


def save_svg(figure: Any, path: Path) -> None:
    """Write the figure and close it."""
    buffer = BytesIO()
    figure.tight_layout()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    pyplot().close(figure)
    write_bytes(path, buffer.getvalue())


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


TRAINING = ("text", "corpus", "layers", "models", "training", "em")  # folders of the code that decides what is learned


def training_code(commit: str) -> str:
    """An id of the training code at a commit of this checkout, the same as long as no file of it changes. "unknown"
    where the commit is not here, or had changes of its own."""
    here = Path(__file__).resolve().parents[1]
    try:
        trees = _git(here, "ls-tree", commit, "./", "./paper/").splitlines()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    named = (line.split() for line in trees)  # mode, kind, id, name
    return " ".join(tree for _, _, tree, name in named if Path(name).name in TRAINING)


def machine() -> str:
    """For example `2 cores, x86-64 AVX2`."""
    count = cores()
    capability = torch.backends.cpu.get_cpu_capability()  # what the kernels of torch use here
    return f"{count} core{'s' * (count != 1)}, {platform.machine().replace('_', '-')} {capability}"


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
