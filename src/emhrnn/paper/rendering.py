"""Tables as Markdown, and figures by matplotlib: SVG files that are the same for the same data."""

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError
from emhrnn.files import write_bytes


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
