"""`emhrnn reproduce table1`, `table2`, `table3`, `figures`: what the paper shows, each by one command."""

from pathlib import Path
from typing import Annotated

import typer

from emhrnn.products.cli.options import Json, Quiet, Report
from emhrnn.products.cli.reproduce_table2 import table2
from emhrnn.products.cli.reproduce_table3 import figures, table3
from emhrnn.products.cli.simulate import Processes, Quick, run_simulation

reproduce = typer.Typer(
    name="reproduce",
    no_args_is_help=True,
    help="Make a table of the paper anew, with seeds, into the folder results.",
)


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
    where it was. `emhrnn simulate` runs parts of it.
    """
    from emhrnn.experiments.simulation.run import Plan
    from emhrnn.experiments.simulation.sizes import Sizes

    plan = Plan(seeds=seeds, sizes=Sizes.quick() if quick else Sizes(), report=report)
    work = work or Path("runs/table1-quick" if quick else "runs/table1")
    out = out or (work if quick else Path("results"))  # a quick table must not replace the real one
    command = f"emhrnn reproduce table1 --seeds {seeds}{' --quick' * quick}"
    run_simulation(plan, out, work, command=command, processes=processes, json=json, quiet=quiet)


TABLES = (
    (table1, "Recovering simulated phrase ends."),
    (table2, "Real data: all rows of the paper."),
    (table3, "Phrase lengths, attention and decisive words."),
    (figures, "One document under two models: Figures 4 and 5."),
)
