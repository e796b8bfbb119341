"""`emhrnn paper table1`."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.cli.options import Json, Quiet, Report
from emhrnn.paper.cli.simulate import Processes, Quick, run_simulation


def table1(
    quick: Quick = False,
    seeds: Annotated[int, typer.Option(min=1, help="Worlds to average over: seeds 10, 11, ...", metavar="N")] = 5,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write to.", metavar="FOLDER", show_default="results; quick: the work"),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            "--work", help="Folder for what is done so far.", metavar="FOLDER", show_default="runs/table1[-quick]"
        ),
    ] = None,
    report: Report = False,
    processes: Processes = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Table 1: recovering simulated phrase ends. All readings, all methods, five seeds, and the cost of the E-steps.

    Under 40 minutes on two cores; with --quick, a few minutes on one. Stopped by Ctrl-C, the same command goes on
    where it was. `emhrnn paper simulate` runs parts of it.
    """
    from emhrnn.paper.simulation.run import Plan
    from emhrnn.paper.simulation.sizes import Sizes

    plan = Plan(seeds=seeds, sizes=Sizes.quick() if quick else Sizes(), report=report)
    work = work or Path("runs/table1-quick" if quick else "runs/table1")
    out = out or (work if quick else Path("results"))  # a quick table must not replace the real one
    command = f"emhrnn paper table1 --seeds {seeds}{' --quick' * quick}"
    run_simulation(plan, out, work, command=command, processes=processes, json=json, quiet=quiet)
