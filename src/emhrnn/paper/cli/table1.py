"""`emhrnn paper table1`: the paper's simulation."""

from pathlib import Path
from typing import Annotated

from emhrnn.cli.options import Json, Quiet, Report, option
from emhrnn.paper.cli.compare import Processes, Quick

READINGS = "independent,state,vocabulary"
METHODS = "hm-rnn,mhs-rnn,window-1,window-2,window-5,local,exact,printed-q"


def table1(
    reading: Annotated[str, option("Some of these, with commas.", "NAMES", shown=True)] = READINGS,
    methods: Annotated[str, option("Some of these, with commas.", "NAMES", shown=True)] = METHODS,
    seeds: Annotated[int, option("Worlds to average over: seeds 10, 11, ...", "N", shown=True, min=1)] = 5,
    quick: Quick = False,
    out: Annotated[
        Path | None, option("Folder to write to.", "FOLDER", shown="results; of a part or quick: the work")
    ] = None,
    work: Annotated[Path | None, option("Folder for the finished runs.", "FOLDER", shown="runs/table1[-quick]")] = None,
    figures: Annotated[bool, option("Draw the figure; needs emhrnn[plots].", shown=True)] = True,
    report: Report = False,
    processes: Processes = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Table 1: which share of simulated phrase ends does each method recover?

    \b
    Readings of the paper's text (docs/simulation.md):
      independent   z is a coin toss: nothing to learn, every method must stay at chance
      state         z follows from the teacher's word states; the rest of the network is known
      vocabulary    z follows from the token; everything is learned from the labels alone
    \b
    Examples:
      emhrnn paper table1
      emhrnn paper table1 --reading vocabulary --methods exact,local --seeds 2

    Under 40 minutes on two cores; with --quick, a few minutes on one. After Ctrl-C, the same command resumes. Writes
    table1.md, table1.json and a figure.
    """
    from emhrnn.cli.output import complain, end_if_failed, print_json, say
    from emhrnn.cores import cores
    from emhrnn.paper.simulation.run import SimulationPlan, SimulationSizes, simulate

    part = "".join(
        f" --{name} {given}"
        for name, given, usual in (("reading", reading, READINGS), ("methods", methods, METHODS))
        if given != usual
    )
    work = work or Path("runs/table1-quick" if quick else "runs/table1")
    out = out or (work if quick or part else Path("results"))  # a quick table or a part must not replace the real one
    table = simulate(
        SimulationPlan(
            readings=_names(reading),
            methods=_names(methods),
            seeds=seeds,
            sizes=SimulationSizes.quick() if quick else SimulationSizes(),
            figures=figures,
            report=report,
        ),
        out,
        work,
        command=f"emhrnn paper table1{part} --seeds {seeds}{' --quick' * quick}",
        processes=processes or cores(),
        progress=not (quiet or json),
        say=(lambda _: None) if quiet else complain,
    )
    if json:
        print_json(table.to_dict())
    else:
        say(table.to_markdown())
        say(f"This is in {out / 'table1.md'}, as data in {out / 'table1.json'}.")
    end_if_failed([failure.partition(": ")[0] for failure in table.failures])


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
