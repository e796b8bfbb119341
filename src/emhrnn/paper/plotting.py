"""Run folders to a file with a figure of them."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_bytes
from emhrnn.paper.figure import Drawn, draw
from emhrnn.training import history
from emhrnn.training.run import HISTORY, METRICS, read_description

FORMATS = (".svg", ".png", ".pdf")
MOST = 6  # runs in a figure: more lines than that cannot be told apart


def read_drawn(folder: Path, name: str | None = None) -> Drawn:
    """Raises:
    CheckpointError: the folder is no run, or has no epoch yet.
    """
    description = read_description(folder)
    if not (folder / HISTORY).is_file():
        raise CheckpointError(f"{folder} has no history yet; wait for its first epoch, or go on with --resume")
    epochs = history.read(folder / HISTORY)
    if not any(epoch.best for epoch in epochs):
        raise CheckpointError(f"{folder} has no history yet; wait for its first epoch, or go on with --resume")
    try:
        metrics = json.loads((folder / METRICS).read_text(encoding="utf-8")) if (folder / METRICS).is_file() else {}
        phrases = (metrics.get("valid", {}).get("phrases") or {}).get("histogram")
        metric = str(description["config"]["training"]["metric"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{folder}: its description or metrics are corrupt ({error}); copy the run again or train anew"
        ) from None
    return Drawn(name or folder.resolve().name, metric, epochs, phrases)


def plot(folders: Sequence[Path], out: Path) -> None:
    """Draw the runs over each other into an .svg, .png or .pdf file."""
    if out.suffix.lower() not in FORMATS:
        raise DataError(f"cannot tell the format of {out} from its name; end it in {', '.join(FORMATS)}")
    if len(folders) > MOST:
        raise DataError(f"{len(folders)} runs were given and a figure has room for {MOST}; give fewer")
    try:
        import matplotlib
    except ImportError:
        raise ConfigError(
            "plots need matplotlib, which is not installed; install it with: pip install 'emhrnn[plots]'"
        ) from None
    runs = [read_drawn(folder, name) for folder, name in zip(folders, _names(folders), strict=True)]
    buffer = io.BytesIO()
    # Text stays text in an SVG, and the same run gives the same bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "emhrnn", "font.size": 9}):
        figure = draw(runs)
        figure.savefig(buffer, format=out.suffix[1:].lower(), dpi=160, metadata=_no_date(out))
    try:
        write_bytes(out, buffer.getvalue())
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror or error}; give another file") from None


def _no_date(out: Path) -> dict[str, Any] | None:
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(out.suffix.lower())


def _names(folders: Sequence[Path]) -> list[str]:
    """The name of each folder; the whole path where two have the same."""
    short = [folder.resolve().name for folder in folders]
    return [name if short.count(name) == 1 else str(folder) for name, folder in zip(short, folders, strict=True)]
