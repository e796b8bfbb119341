"""The whole simulation: every reading, method and seed as a job of its own, then the table and a figure.

OUT/table1.md, table1.json             the table
OUT/table1-recovery.svg                recovery against epochs
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, stdev
from time import process_time
from typing import Any

import numpy as np
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.files import write_json, write_text
from emhrnn.paper.em.blocks import exact_blocks, local_blocks, window_blocks
from emhrnn.paper.jobs import HowToRun, JobSpec, Outcome, report_progress, run_jobs
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN
from emhrnn.paper.provenance import commit, machine, told_command
from emhrnn.paper.rendering import check_plots, markdown_table, pyplot, save_svg
from emhrnn.paper.simulation.enumeration import consult, recovered, with_label, without_label
from emhrnn.paper.simulation.generator import READINGS, World, make_world
from emhrnn.paper.simulation.learners import (
    DETECTORS,
    ChooseBlocks,
    DetectorSchedule,
    JointSchedule,
    learn_all,
    learn_detector,
    learn_indicator,
)
from emhrnn.shapes import Bool


@dataclass(frozen=True)
class SimulationSizes:
    """The paper's numbers of documents, and how long each kind of learning lasts."""

    train: int = 10_000
    test: int = 1_000
    rounds: int = 35  # of EM where theta is known
    joint: JointSchedule = field(default_factory=JointSchedule)  # of EM where nothing is
    detector: DetectorSchedule = field(default_factory=DetectorSchedule)

    @classmethod
    def quick(cls) -> "SimulationSizes":
        """Minutes instead of an hour; the figures are those of a small experiment."""
        return cls(
            train=1_000, test=300, rounds=10,
            joint=JointSchedule(epochs=3, documents=100), detector=DetectorSchedule(epochs=2, documents=100),
        )  # fmt: skip

    def arguments(self, reading: str, method: str) -> dict[str, Any]:
        """What a job of this reading and method depends on, so that a change elsewhere leaves it done."""
        kind = {"joint": asdict(self.joint)} if reading == "vocabulary" else {"rounds": self.rounds}
        if method in DETECTORS:
            kind = {"detector": asdict(self.detector)}
        return {"train": self.train, "test": self.test, **kind}

    @classmethod
    def from_arguments(cls, given: dict[str, Any]) -> "SimulationSizes":
        kinds = {"joint": JointSchedule, "detector": DetectorSchedule}
        return cls(**{key: kinds[key](**value) if key in kinds else value for key, value in given.items()})

    def epochs(self, reading: str, method: str) -> int:
        if method in DETECTORS:
            return self.detector.epochs
        return self.joint.epochs if reading == "vocabulary" else self.rounds


@dataclass(frozen=True)
class EMMethod:
    """Which free positions an E-step enumerates together; `printed_q` weighs them as the paper prints it (A1)."""

    choose_blocks: ChooseBlocks
    printed_q: bool = False


def _window(length: int) -> ChooseBlocks:
    return lambda batch, _: window_blocks(batch, length)


EM_METHODS: dict[str, EMMethod] = {
    "window-1": EMMethod(_window(1)),
    "window-2": EMMethod(_window(2)),
    "window-5": EMMethod(_window(5)),
    "local": EMMethod(lambda batch, random: local_blocks(batch, generator=random)),
    "exact": EMMethod(lambda batch, _: exact_blocks(batch)),
    "printed-q": EMMethod(lambda batch, _: exact_blocks(batch), printed_q=True),
}
METHODS = (*DETECTORS, *EM_METHODS)
ORACLE = "oracle"

Model = EMHRNN | HMRNN | MHSRNN


@dataclass(frozen=True)
class Point:
    """Recovery of all test positions without the label, after an epoch."""

    epoch: int
    test: float


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
    clock = _Clock()
    points: list[Point] = []

    def watch(epoch: int, model: Model) -> None:
        with clock.stopped():
            test = recovered(world.test, _found(model, world.test), world.z_test).all
            points.append(Point(epoch + 1, test))
            report_progress(folder, (epoch + 1) / sizes.epochs(world.reading, method), f"test {100 * test:.1f} %")

    model = _learn(world, method, seed, sizes, watch)
    seconds = clock.seconds
    measured = {}
    for name, batch, z in (("train", world.train, world.z_train), ("test", world.test, world.z_test)):
        measured[name] = asdict(recovered(batch, _found(model, batch), z))
        if isinstance(model, EMHRNN):
            found, evidence = with_label(model, batch)
            measured[name] |= {f"{k}_with_label": v for k, v in asdict(recovered(batch, found, z)).items()}
            measured[name]["log_evidence"] = evidence
    return {
        **measured,
        "points": [asdict(point) for point in points],
        "seconds": seconds,
        "seconds_per_epoch": seconds / len(points),
    }


def _learn(world: World, method: str, seed: int, sizes: SimulationSizes, watch: Callable[[int, Model], None]) -> Model:
    if method in DETECTORS:
        return learn_detector(world, method, seed, sizes.detector, watch)
    if method not in EM_METHODS:
        raise ConfigError(f"unknown method {method!r}; use some of {', '.join(METHODS)}")
    how = EM_METHODS[method]
    if world.reading == "vocabulary":
        return learn_all(world, how.choose_blocks, seed, sizes.joint, printed_q=how.printed_q, watch=watch)
    return learn_indicator(world, how.choose_blocks, seed, sizes.rounds, printed_q=how.printed_q, watch=watch)


@torch.no_grad()
def _found(model: Model, batch: Batch) -> Bool[np.ndarray, " words"]:
    if isinstance(model, EMHRNN):
        return without_label(model, batch)
    z: np.ndarray = model(batch).z
    return z


class _Clock:
    """CPU seconds that learning took: other programs hardly disturb them, and measuring in between does not count."""

    def __init__(self) -> None:
        self._began = process_time()
        self._stopped = 0.0

    @property
    def seconds(self) -> float:
        return process_time() - self._began - self._stopped

    @contextmanager
    def stopped(self) -> Iterator[None]:
        began = process_time()
        try:
            yield
        finally:
            self._stopped += process_time() - began


# ------------------------------------------------------------------ the table and the figure


PAPER: dict[str, tuple[float, float]] = {  # train and test, in percent
    "hm-rnn": (95.2, 90.1),
    "mhs-rnn": (97.7, 91.9),
    "window-1": (97.2, 89.68),
    "window-2": (97.2, 90.0),
    "window-5": (97.6, 91.0),
    "local": (98.0, 92.7),
    "exact": (98.0, 93.0),
}
NAMES = {
    "hm-rnn": "HM-RNN",
    "mhs-rnn": "MHS-RNN",
    "window-1": "EM-HRNN, window 1",
    "window-2": "EM-HRNN, window 2",
    "window-5": "EM-HRNN, window 5",
    "local": "EM-HRNN, local",
    "exact": "EM-HRNN, exact",
    "printed-q": "EM-HRNN, Q as printed",
}
CAPTION = """Percent of indicators recovered, mean over seeds. *Test* is without the label and counts all ten positions,
as the paper does; 60 % is chance, because two of ten are given. *With label*: by the posterior of the learned model."""
CHANCE = {"free": 50.0, "all": 60.0}


@dataclass(frozen=True)
class RecoveryRow:
    """Recovered indicators in percent, of all positions unless it says free; without the label unless it says with."""

    reading: str
    method: str
    train: float
    test: float
    test_sd: float | None  # over seeds; none with one seed
    seeds: int
    test_free: float
    train_with_label: float | None  # none where a method has no posterior
    test_with_label: float | None
    test_free_with_label: float | None
    log_evidence: float | None  # test: mean log p(y | w)
    seconds: float  # CPU, of learning


@dataclass(frozen=True)
class Allowed:
    """What the oracle of a reading says; entropies in bits, recoveries in percent."""

    reading: str
    label_entropy: float
    information: float
    oracle_free: float
    oracle_all: float


def make_row(reading: str, method: str, results: Sequence[Mapping[str, Any]]) -> RecoveryRow:
    """From the results of one job per seed."""

    def mean(split: str, key: str, scale: float = 100.0) -> float | None:
        values = [result[split][key] for result in results if key in result[split]]
        return round(scale * fmean(values), 3) if values else None

    def given(split: str, key: str) -> float:
        value = mean(split, key)
        assert value is not None
        return value

    tests = [100 * result["test"]["all"] for result in results]
    return RecoveryRow(
        reading=reading,
        method=method,
        train=given("train", "all"),
        test=given("test", "all"),
        test_sd=round(stdev(tests), 3) if len(tests) > 1 else None,
        seeds=len(results),
        test_free=given("test", "free"),
        train_with_label=mean("train", "all_with_label"),
        test_with_label=mean("test", "all_with_label"),
        test_free_with_label=mean("test", "free_with_label"),
        log_evidence=mean("test", "log_evidence", scale=1.0),
        seconds=round(fmean(result["seconds"] for result in results), 1),
    )


def make_allowed(reading: str, results: Sequence[Mapping[str, Any]]) -> Allowed:
    """From the results of the oracle, one per seed."""

    def mean(key: str, scale: float = 1.0) -> float:
        return round(scale * fmean(result[key] for result in results), 3)

    return Allowed(reading, mean("label_entropy"), mean("information"), mean("free", 100.0), mean("all", 100.0))


@dataclass(frozen=True)
class RecoveryTable:
    """Table 1: its rows, what the readings allow, and the jobs that failed."""

    header: Mapping[str, Any]  # command, commit, seeds, machine, documents
    rows: Sequence[RecoveryRow]
    allowed: Sequence[Allowed]
    failures: Sequence[str] = ()

    @property
    def readings(self) -> dict[str, Allowed | None]:
        """What each allows; None where its oracle failed or has not been asked yet: its rows are there all the same."""
        known = {allowed.reading: allowed for allowed in self.allowed}
        return {**known, **{row.reading: known.get(row.reading) for row in self.rows}}

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.header,
            "unit": "percent of indicators recovered",
            "chance": CHANCE,
            "rows": [{**asdict(row), "paper_test": PAPER.get(row.method, (None, None))[1]} for row in self.rows],
            "oracle": [asdict(allowed) for allowed in self.allowed],
            "failures": list(self.failures),
        }

    def to_markdown(self) -> str:
        lines = ["# Table 1: recovered indicators", ""]
        lines += [f"- {name}: {value}" for name, value in self.header.items()]
        lines += ["", CAPTION, ""]
        for reading, allowed in self.readings.items():
            told = [] if allowed is None else [_told(allowed), ""]
            lines += [f"## {reading}", "", *told, self._rows(reading)]
        if self.failures:
            lines += ["## Failed", "", *[f"- {failure}" for failure in self.failures], ""]
        return "\n".join(lines)

    def _rows(self, reading: str) -> str:
        columns = ["method", "train", "test", "sd", "test, free", "test with label", "free with label", "seeds",
                   "CPU s to learn"]  # fmt: skip
        if reading == "vocabulary":
            columns.append("paper: test")
        rows = []
        for row in sorted(
            (row for row in self.rows if row.reading == reading), key=lambda r: list(NAMES).index(r.method)
        ):
            cells = [NAMES[row.method], *map(_number, (row.train, row.test)), _number(row.test_sd, 2)]
            cells += map(_number, (row.test_free, row.test_with_label, row.test_free_with_label))
            cells += [str(row.seeds), f"{row.seconds:.0f}"]
            if reading == "vocabulary":
                cells.append(_number(PAPER.get(row.method, (None, None))[1]))
            rows.append(cells)
        return markdown_table(columns, rows)


def _told(allowed: Allowed) -> str:
    return (
        f"H(y) = {allowed.label_entropy:.2f} bits, I(z; y | x) = {allowed.information:.2f} bits. An oracle that knows "
        f"the teacher, the tokens and the label, but no rule for z, recovers {allowed.oracle_all:.1f} % "
        f"(free positions: {allowed.oracle_free:.1f} %)."
    )


def _number(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


Points = Mapping[tuple[str, str], Sequence[Sequence[Mapping[str, Any]]]]  # (reading, method) -> seeds -> epochs


def draw_recovery(table: RecoveryTable, points: Points, path: Path) -> None:
    """One panel per reading: mean over seeds and range of each method; chance, oracle and the paper's values."""
    plt = pyplot()
    readings = table.readings
    figure, axes = plt.subplots(1, len(readings), figsize=(5.2 * len(readings), 4.4), squeeze=False, sharey=True)
    for axis, (reading, allowed) in zip(axes[0], readings.items(), strict=True):
        axis.axhline(CHANCE["all"], color="0.5", linestyle=":", linewidth=1)
        axis.text(1, CHANCE["all"] + 0.4, "chance", fontsize=7, color="0.4")
        if allowed is not None:
            axis.axhline(allowed.oracle_all, color="0.2", linestyle="--", linewidth=1)
            axis.text(1, allowed.oracle_all + 0.4, "oracle, one document", fontsize=7, color="0.2")
        for number, method in enumerate(NAMES):
            seeds = points.get((reading, method))
            if not seeds:
                continue
            test = 100 * np.array([[point["test"] for point in epochs] for epochs in seeds])
            epoch = [point["epoch"] for point in seeds[0]]
            colour = f"C{number}"
            axis.plot(epoch, test.mean(0), color=colour, label=NAMES[method], linewidth=1.4)
            axis.fill_between(epoch, test.min(0), test.max(0), color=colour, alpha=0.12, linewidth=0)
            if reading == "vocabulary" and method in PAPER:
                axis.plot([1.0, 1.03], [PAPER[method][1]] * 2, color=colour, linewidth=2, clip_on=False,
                          transform=axis.get_yaxis_transform())  # fmt: skip
        axis.set(title=reading, xlabel="epoch" if reading == "vocabulary" else "EM round, or epoch")
        axis.set_xscale("log")
    axes[0][0].set_ylabel("indicators recovered on test documents, %")
    axes[0][0].set_ylim(45, 101)
    handles = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    title = "ticks at the far right: the paper" if "vocabulary" in readings else None
    axes[0][0].legend(handles.values(), handles, fontsize=7, loc="best", title=title, title_fontsize=7)
    save_svg(figure, path)


# ------------------------------------------------------------------ all of it in order


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
