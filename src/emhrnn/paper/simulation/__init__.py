"""The paper's simulation and Table 1: every reading, method and seed as a job of its own, then the table and a figure.

    world.py        documents with known phrase ends, their teacher; all their segmentations; the oracle
    learners.py     EM with theta known and unknown; HM-RNN and MHS-RNN
    table.py        the table and its figure

OUT/table1.md, table1.json             the table
OUT/table1-recovery.svg                recovery against epochs
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.files import write_json, write_text
from emhrnn.models.model import log_likelihood
from emhrnn.paper.em.blocks import exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.likelihood import batch_labels
from emhrnn.paper.jobs import HowToRun, JobSpec, Outcome, report_progress, run_jobs
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN
from emhrnn.paper.reports import check_plots, commit, machine, told_command
from emhrnn.paper.simulation.learners import (
    DETECTORS,
    ChooseBlocks,
    Schedule,
    learn_all,
    learn_detector,
    learn_indicator,
)
from emhrnn.paper.simulation.table import RecoveryTable, draw_recovery, make_allowed, make_row
from emhrnn.paper.simulation.world import READINGS, World, consult, make_world, recovered, with_label, without_label
from emhrnn.shapes import Bool, Float


@dataclass(frozen=True)
class SimulationSizes:
    """The paper's numbers of documents, and how long learning lasts."""

    train: int = 10_000
    test: int = 1_000
    rounds: int = 35  # of EM where theta is known
    schedule: Schedule = field(default_factory=Schedule)  # of all other learning

    @classmethod
    def quick(cls) -> "SimulationSizes":
        """Minutes instead of hours; the figures are those of a small experiment."""
        return cls(train=1_000, test=300, rounds=10, schedule=Schedule(epochs=3, documents=100, learning_rates=(1e-2,)))

    def arguments(self, reading: str, method: str) -> dict[str, Any]:
        """What a job of this reading and method depends on, so that a change elsewhere leaves it done."""
        how = {"rounds": self.rounds} if knows_theta(reading, method) else {"schedule": asdict(self.schedule)}
        return {"train": self.train, "test": self.test, **how}

    @classmethod
    def from_arguments(cls, given: dict[str, Any]) -> "SimulationSizes":
        return cls(**{**given, "schedule": Schedule(**given.get("schedule", {}))})


def _window(length: int) -> ChooseBlocks:
    return lambda batch, _: window_blocks(batch, length)


PRINTED_Q = "printed-q"  # weighs configurations as the paper prints it (docs/paper.md A1)
EM_METHODS: dict[str, ChooseBlocks] = {  # which free positions an E-step enumerates together
    "window-1": _window(1),
    "window-2": _window(2),
    "window-5": _window(5),
    "local": lambda batch, random: local_blocks(batch, generator=random),
    "exact": lambda batch, _: exact_blocks(batch),
    PRINTED_Q: lambda batch, _: exact_blocks(batch),
}
TRUE_Z = "true-z"  # an EM-HRNN that is given the true z, and learns theta
METHODS = (*DETECTORS, *EM_METHODS, TRUE_Z)
ORACLE = "oracle"


def knows_theta(reading: str, method: str) -> bool:
    """Whether the method is given the teacher's network, and learns its indicator alone."""
    return method in EM_METHODS and reading != "vocabulary"


Model = EMHRNN | HMRNN | MHSRNN


def run_job(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """For `run_jobs`: arguments reading, method, seed, and sizes as `Sizes.arguments` gives them."""
    torch.set_num_threads(1)
    sizes = SimulationSizes.from_arguments(arguments["sizes"])
    world = make_world(arguments["reading"], arguments["seed"], train=sizes.train, test=sizes.test)
    if arguments["method"] == ORACLE:
        result = asdict(consult(world.teacher, world.test, world.z_test))
    else:
        result = _learn_and_measure(world, arguments["method"], arguments["seed"], sizes, folder)
    return {**result, "commit": commit(), "cpu_seconds": process_time()}  # of the whole process


def _learn_and_measure(world: World, method: str, seed: int, sizes: SimulationSizes, folder: Path) -> dict[str, Any]:
    """Of the learning rate under whose model the training labels are likeliest."""
    known = knows_theta(world.reading, method)
    rates = [0.0] if known else list(sizes.schedule.learning_rates)
    epochs = (sizes.rounds if known else sizes.schedule.epochs) * len(rates)
    tried: dict[float, dict[str, Any]] = {}
    for number, rate in enumerate(rates):

        def tell(epoch: int, test: float, before: float = number / len(rates)) -> None:
            report_progress(folder, before + epoch / epochs, f"test {100 * test:.1f} %")

        tried[rate] = _one(world, method, _learning(world, method, seed, sizes, rate), tell)
    best = max(tried, key=lambda rate: float(tried[rate]["train"]["log_likelihood"]))
    return {**tried[best], "learning_rate": best, "tried": {str(rate): one["train"] for rate, one in tried.items()}}


def _one(world: World, method: str, learning: Iterator[Model], tell: Callable[[int, float], None]) -> dict[str, Any]:
    """`seconds` are CPU seconds of learning, which other programs hardly disturb, without measuring in between; a point
    is the recovery of all test positions without the label, after an epoch."""
    points, seconds = list[dict[str, Any]](), 0.0
    began = process_time()
    for epoch, model in enumerate(learning, start=1):
        seconds += process_time() - began
        test = recovered(world.test, _found(model, method, world.test, world.z_test), world.z_test).all
        points.append({"epoch": epoch, "test": test})
        tell(epoch, test)
        began = process_time()
    measured = {}
    for name, batch, z in (("train", world.train, world.z_train), ("test", world.test, world.z_test)):
        measured[name] = asdict(recovered(batch, _found(model, method, batch, z), z))
        if isinstance(model, EMHRNN) and method != TRUE_Z:
            found, log_p = with_label(model, batch)
            measured[name] |= {f"{k}_with_label": v for k, v in asdict(recovered(batch, found, z)).items()}
        else:
            log_p = _of_classes(model, batch, z)
        labels = batch_labels(batch)
        measured[name]["log_likelihood"] = float(log_likelihood(log_p, labels).mean())
        measured[name]["label_accuracy"] = float((log_p.argmax(dim=1) == labels).double().mean())
    return {**measured, "points": points, "seconds": seconds, "seconds_per_epoch": seconds / len(points)}


def _learning(world: World, method: str, seed: int, sizes: SimulationSizes, rate: float) -> Iterator[Model]:
    """The model after each epoch."""
    if method in DETECTORS:
        return learn_detector(world, method, seed, sizes.schedule, rate)
    choose_blocks, printed_q = EM_METHODS.get(method), method == PRINTED_Q
    if choose_blocks is not None and knows_theta(world.reading, method):
        return learn_indicator(world, choose_blocks, seed, sizes.rounds, printed_q=printed_q)
    return learn_all(world, choose_blocks, seed, sizes.schedule, rate, printed_q=printed_q)


@torch.no_grad()
def _found(model: Model, method: str, batch: Batch, true: Bool[np.ndarray, " words"]) -> Bool[np.ndarray, " words"]:
    if method == TRUE_Z:
        return true
    if isinstance(model, EMHRNN):
        return without_label(model, batch)
    z: np.ndarray = model(batch).z
    return z


@torch.no_grad()
def _of_classes(model: Model, batch: Batch, z: Bool[np.ndarray, " words"]) -> Float[Tensor, "documents classes"]:
    """log p(y | w) of a network with a detector of its own; of an EM-HRNN, with this z."""
    output = model.encode_phrases(batch, z) if isinstance(model, EMHRNN) else model(batch)
    return torch.log_softmax(output.logits, dim=1)


FIRST_SEED = 10  # worlds 0 and 1 served to choose the generator's setting and the schedule: they prove nothing


@dataclass(frozen=True)
class SimulationPlan:
    """What to run."""

    readings: Sequence[str] = READINGS
    methods: Sequence[str] = METHODS
    seeds: int = 5
    sizes: SimulationSizes = field(default_factory=SimulationSizes)
    figures: bool = True

    def __post_init__(self) -> None:
        for what, given, known in (("reading", self.readings, READINGS), ("method", self.methods, METHODS)):
            if wrong := [name for name in given if name not in known]:
                raise ConfigError(f"unknown {what} {wrong[0]!r}; use one or more of {', '.join(known)}")
        if self.seeds < 1:
            raise ConfigError(f"{self.seeds} seeds; use at least 1")


def simulate(plan: SimulationPlan, out: Path, jobs_folder: Path, how: HowToRun) -> RecoveryTable:
    """Runs what is not done yet, and writes table and figures to `out`."""
    if plan.figures:
        check_plots()
    jobs = _jobs(plan)
    table, points = _gather(plan, jobs, run_jobs(run_job, jobs, jobs_folder, how))
    write_json(out / "table1.json", table.to_dict())
    write_text(out / "table1.md", table.to_markdown())
    if plan.figures:
        draw_recovery(table, points, out / "table1-recovery.svg")
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
    plan: SimulationPlan, jobs: Sequence[JobSpec], outcomes: Sequence[Outcome]
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
    waiting = sum(not outcome.ended for outcome in outcomes)
    header = {
        "command": told_command(),
        "commit": ", ".join(sorted({o.result.get("commit", "unknown") for o in outcomes if o.result is not None})),
        **({"unfinished": f"{waiting} of {len(jobs)} jobs; rows say how many seeds they have"} if waiting else {}),
        "seeds": f"{plan.seeds} ({FIRST_SEED} to {FIRST_SEED + plan.seeds - 1})",
        "machine": machine(),
        "documents": f"{plan.sizes.train:,} to learn from, {plan.sizes.test:,} to test on",
        "cpu_minutes": round(sum(o.result["cpu_seconds"] for o in outcomes if o.result is not None) / 60, 1),
    }
    points = {key: [result["points"] for result in results] for key, results in found.items() if key[1] != ORACLE}
    return RecoveryTable(header, rows, allowed, failures), points
