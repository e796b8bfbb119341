"""Figures by matplotlib: SVG files that are the same for the same data."""

from io import BytesIO
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError
from emhrnn.files import write_bytes


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
