"""`emhrnn paper simulate` and `table1`: the paper's Table 1."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from emhrnn.cli.options import Json, Quiet, Report
from emhrnn.paper.cli.compare import Processes, Quick

if TYPE_CHECKING:
    from emhrnn.paper.simulation.run import SimulationPlan


def simulate(
    reading: Annotated[
        str,
        typer.Option(help="independent, state, vocabulary; several with commas.", metavar="NAMES", show_default="all"),
    ] = "independent,state,vocabulary",
    methods: Annotated[
        str,
        typer.Option(
            help="hm-rnn, mhs-rnn, window-1, window-2, window-5, local, exact, printed-q; several with commas.",
            metavar="NAMES",
            show_default="all",
        ),
    ] = "hm-rnn,mhs-rnn,window-1,window-2,window-5,local,exact,printed-q",
    seeds: Annotated[int, typer.Option(min=1, help="Worlds to average over: seeds 10, 11, ...", metavar="N")] = 5,
    out: Annotated[Path, typer.Option("--out", help="Folder to write to.", metavar="FOLDER")] = Path("runs/simulation"),
    quick: Quick = False,
    cost: Annotated[bool, typer.Option(help="Also measure what the E-steps cost.")] = False,
    figures: Annotated[bool, typer.Option(help="Draw the figures; needs emhrnn[plots].")] = True,
    processes: Processes = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulated documents with known phrase ends: which share of them does each method recover?

    \b
    Readings of the paper's text (docs/simulation.md):
      independent   z is a coin toss: nothing to learn, every method must stay at chance
      state         z follows from the teacher's word states; the rest of the network is known
      vocabulary    z follows from the token; everything is learned from the labels alone

    Stopped by Ctrl-C, the same command goes on where it was. Writes table1.md, table1.json and figures.
    """
    from emhrnn.paper.simulation.run import SimulationPlan, SimulationSizes

    plan = SimulationPlan(
        readings=_names(reading),
        methods=_names(methods),
        seeds=seeds,
        sizes=SimulationSizes.quick() if quick else SimulationSizes(),
        cost=cost,
        figures=figures,
    )
    command = f"emhrnn paper simulate --reading {reading} --methods {methods} --seeds {seeds}{' --quick' * quick}"
    run_simulation(plan, out, out / "jobs", command=command, processes=processes, json=json, quiet=quiet)


def run_simulation(
    plan: "SimulationPlan",
    out: Path,
    jobs: Path,
    *,
    command: str,
    processes: int | None,
    json: bool,
    quiet: bool,
) -> None:
    """For `simulate` and `paper table1`."""
    import sys

    from emhrnn.cli.output import end_if_failed, print_json, say
    from emhrnn.cores import cores
    from emhrnn.paper.simulation.run import simulate as run

    def tell(line: str) -> None:
        if not quiet:
            print(line, file=sys.stderr, flush=True)

    table = run(
        plan, out, jobs, command=command, processes=processes or cores(), progress=not (quiet or json), say=tell
    )
    if json:
        print_json(table.to_dict())
    else:
        say(table.to_markdown())
        say(f"This is in {out / 'table1.md'}, as data in {out / 'table1.json'}.")
    end_if_failed([failure.partition(": ")[0] for failure in table.failures])


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


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
    from emhrnn.paper.simulation.run import SimulationPlan, SimulationSizes

    plan = SimulationPlan(seeds=seeds, sizes=SimulationSizes.quick() if quick else SimulationSizes(), report=report)
    work = work or Path("runs/table1-quick" if quick else "runs/table1")
    out = out or (work if quick else Path("results"))  # a quick table must not replace the real one
    command = f"emhrnn paper table1 --seeds {seeds}{' --quick' * quick}"
    run_simulation(plan, out, work, command=command, processes=processes, json=json, quiet=quiet)
