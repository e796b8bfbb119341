"""`emhrnn paper plot`: the history of runs as a figure."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Json


def plot(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders made by `emhrnn train`.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="File to write: .svg, .png or .pdf.", metavar="FILE", show_default="plot.svg in the first RUN"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Draw loss, validation, learning rate, boundary rate and phrase lengths of a run, or of several over each other.

    \b
    Examples:
      emhrnn paper plot run
      emhrnn paper plot run1 run2 run3 --out compared.png

    EM's phases are shaded, the epoch whose weights were kept is circled. Needs matplotlib: pip install 'emhrnn[plots]'.
    """
    from emhrnn.cli.output import print_json, say
    from emhrnn.paper.plot import plot as plot_runs

    file = out or runs[0] / "plot.svg"
    plot_runs(runs, file)
    if json:
        print_json({"file": str(file), "runs": [str(run) for run in runs]})
    else:
        say(f"{file}")
