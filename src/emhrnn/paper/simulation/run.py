"""The whole simulation: every reading, method and seed as a job of its own, then the table and the figures.

OUT/table1.md, table1.json             the table
OUT/table1-recovery.svg                recovery against epochs
OUT/table1-cost.svg, table1-cost.json  what the E-steps cost
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError, TrainingError
from emhrnn.files import write_json, write_text
from emhrnn.paper.jobs import JobSpec, Outcome, run_jobs, so_far
from emhrnn.paper.plot import check_plots
from emhrnn.paper.provenance import machine
from emhrnn.paper.simulation.cost import cost_job
from emhrnn.paper.simulation.generator import READINGS
from emhrnn.paper.simulation.methods import METHODS, ORACLE, SimulationSizes, run_job
from emhrnn.paper.simulation.table import RecoveryTable, draw_cost, draw_recovery, make_allowed, make_row

FIRST_SEED = 10  # worlds 0 and 1 served to choose the generator's setting and the schedule: they prove nothing


@dataclass(frozen=True)
class SimulationPlan:
    """What to run."""

    readings: Sequence[str] = READINGS
    methods: Sequence[str] = METHODS
    seeds: int = 5
    sizes: SimulationSizes = field(default_factory=SimulationSizes)
    cost: bool = True
    figures: bool = True
    report: bool = False  # run nothing: the table of what is done so far

    def __post_init__(self) -> None:
        for what, given, known in (("reading", self.readings, READINGS), ("method", self.methods, METHODS)):
            if wrong := [name for name in given if name not in known]:
                raise ConfigError(f"unknown {what} {wrong[0]!r}; use one or more of {', '.join(known)}")
        if self.seeds < 1:
            raise ConfigError(f"{self.seeds} seeds; use at least 1")


def simulate(
    plan: SimulationPlan,
    out: Path,
    jobs_folder: Path,
    *,
    command: str,
    processes: int,
    progress: bool = True,
    say: Callable[[str], None] = lambda _: None,
) -> RecoveryTable:
    """Runs what is not done yet, and writes table and figures to `out`."""
    if plan.figures:
        check_plots()
    jobs = _jobs(plan)
    if plan.report:
        found = so_far(jobs_folder, jobs)
        outcomes = [outcome or Outcome(job.name, None) for job, outcome in zip(jobs, found, strict=True)]
    else:
        outcomes = run_jobs(run_job, jobs, jobs_folder, processes=processes, progress=progress, say=say)
    table, points = _gather(plan, jobs, outcomes, command)
    write_json(out / "table1.json", table.to_dict())
    write_text(out / "table1.md", table.to_markdown())
    if plan.figures:
        draw_recovery(table, points, out / "table1-recovery.svg")
    if plan.cost:
        _cost(plan, out, jobs_folder / "cost", progress=progress, say=say)
    return table


def _jobs(plan: SimulationPlan) -> list[JobSpec]:
    """Seed by seed, so that a run that is stopped has whole tables of fewer seeds; the long ones first."""
    order = [reading for reading in reversed(READINGS) if reading in plan.readings]
    methods = [*(method for method in reversed(METHODS) if method in plan.methods), ORACLE]
    return [
        JobSpec(
            f"{reading}-{method}-{seed}",
            {"reading": reading, "method": method, "seed": seed, "sizes": plan.sizes.arguments(reading, method)},
        )
        for seed in range(FIRST_SEED, FIRST_SEED + plan.seeds)
        for reading in order
        for method in methods
    ]


def _gather(
    plan: SimulationPlan, jobs: Sequence[JobSpec], outcomes: Sequence[Outcome], command: str
) -> tuple[RecoveryTable, dict[tuple[str, str], list[Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for job, outcome in zip(jobs, outcomes, strict=True):
        if outcome.result is not None:
            found.setdefault((job.arguments["reading"], job.arguments["method"]), []).append(outcome.result)
    failures = [f"{outcome.name}: {outcome.error}" for outcome in outcomes if outcome.error is not None]
    if not found:
        raise TrainingError(
            f"no job of the simulation came to its end{'; the first: ' + failures[0] if failures else ''}"
        )
    rows = [
        make_row(reading, method, found[reading, method])
        for reading in plan.readings
        for method in METHODS
        if (reading, method) in found
    ]
    allowed = [make_allowed(reading, found[reading, ORACLE]) for reading in plan.readings if (reading, ORACLE) in found]
    waiting = sum(outcome.result is None and outcome.error is None for outcome in outcomes)
    header = {
        "command": command,
        "commit": ", ".join(sorted({o.result.get("commit", "unknown") for o in outcomes if o.result is not None})),
        **({"unfinished": f"{waiting} of {len(jobs)} jobs; rows say how many seeds they have"} if waiting else {}),
        "seeds": f"{plan.seeds} ({FIRST_SEED} to {FIRST_SEED + plan.seeds - 1})",
        "machine": machine(),
        "documents": f"{plan.sizes.train:,} to learn from, {plan.sizes.test:,} to test on",
        "cpu_minutes": round(sum(o.result["cpu_seconds"] for o in outcomes if o.result is not None) / 60, 1),
    }
    points = {key: [result["points"] for result in results] for key, results in found.items() if key[1] != ORACLE}
    return RecoveryTable(header, rows, allowed, failures), points


def _cost(plan: SimulationPlan, out: Path, folder: Path, *, progress: bool, say: Callable[[str], None]) -> None:
    """Alone, after the others, so that nothing of ours disturbs the clock. A report has it if it is there."""
    job = JobSpec("cost", {"documents": plan.sizes.timed, "repeats": 7})
    if plan.report and so_far(folder, [job]) == [None]:
        return
    (outcome,) = run_jobs(cost_job, [job], folder, processes=1, progress=progress, say=say)
    if outcome.result is None:
        raise TrainingError(f"the table is written, but the cost could not be measured: {outcome.error}")
    write_json(out / "table1-cost.json", {"machine": machine(), **outcome.result})
    if plan.figures:
        draw_cost(outcome.result, out / "table1-cost.svg")
