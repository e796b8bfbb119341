"""Table 1 and its figure: recovered indicators of each reading and method, beside the paper's numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np

from emhrnn.paper.reports import markdown_table, pyplot, save_svg

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
    "true-z": "EM-HRNN, true z given",
}
CAPTION = """Percent of indicators recovered, mean over seeds. *Test* is without the label and counts all ten positions,
as the paper does; 60 % is chance, because two of ten are given. *With label*: by the posterior of the learned model.
*Label accuracy* and *log p(y)*, in nats, are of test documents, all segmentations summed out where a model has several.
Rows that learn by gradients have the same epochs, dropout and learning rates; the training labels pick the rate."""
CHANCE = {"free": 50.0, "all": 60.0}
MEANS = {  # of a row, over seeds: where the results have them
    "train": ("train", "all"), "test": ("test", "all"), "test_free": ("test", "free"),
    "train_with_label": ("train", "all_with_label"), "test_with_label": ("test", "all_with_label"),
    "test_free_with_label": ("test", "free_with_label"), "label_accuracy": ("test", "label_accuracy"),
}  # fmt: skip


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
    log_likelihood: float | None  # test: mean log p(y | w)
    label_accuracy: float | None  # test
    tests: Sequence[float]  # test, by seed
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

    tests = [100 * result["test"]["all"] for result in results]
    means: dict[str, Any] = {name: mean(*where) for name, where in MEANS.items()}
    return RecoveryRow(
        reading=reading,
        method=method,
        test_sd=round(stdev(tests), 3) if len(tests) > 1 else None,
        seeds=len(results),
        log_likelihood=mean("test", "log_likelihood", scale=1.0),
        tests=tuple(round(test, 3) for test in tests),
        seconds=round(fmean(result["seconds"] for result in results), 1),
        **means,
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
        columns = ["method", "train", "test", "sd", "test, free", "test with label", "free with label",
                   "label accuracy", "log p(y)", "seeds", "CPU s to learn"]  # fmt: skip
        if reading == "vocabulary":
            columns.append("paper: test")
        rows = []
        for row in sorted(
            (row for row in self.rows if row.reading == reading), key=lambda r: list(NAMES).index(r.method)
        ):
            cells = [NAMES[row.method], *map(_number, (row.train, row.test)), _number(row.test_sd, 2)]
            cells += map(_number, (row.test_free, row.test_with_label, row.test_free_with_label))
            cells += [_number(row.label_accuracy), _number(row.log_likelihood, 2)]
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
