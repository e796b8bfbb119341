"""The results of a comparison: as data, with means and spreads over seeds and significance; then as Markdown and for
the terminal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from emhrnn.cli.output import aligned
from emhrnn.paper.comparison.rows import pooled_result, unpack
from emhrnn.paper.reports import markdown_table, percent, plain
from emhrnn.paper.significance import (
    LEVEL,
    SAMPLES,
    Difference,
    accuracy_interval,
    holm,
    mcnemar_of_seeds,
    p_value,
    paired_bootstrap,
)
from emhrnn.shapes import Bool

METHOD = (
    f"Accuracy is the mean over the seeds, sd their standard deviation. Intervals are 95 % of {SAMPLES:,} bootstrap "
    "resamples of the test documents and of the seeds. p compares with the reference by the same bootstrap, paired by "
    "document; McNemar's p is exact; for several seeds it combines the pairs of seeds by their median order statistic; "
    "it, and every p of a row with one seed, is about these runs and leaves out the variance of training. "
    f"A difference counts when the bootstrap's p, after Holm's correction over the rows of the set, is below {LEVEL}. "
    "A row is marked best when it is so against every other row."
)

FOLDS = (
    "Cross-validation: the predictions of all folds are pooled, so accuracy, intervals and p are of all documents, "
    "each tested once. macro-F1 is the mean over the folds; training s is the sum. The folds share most of their "
    "training documents: intervals and p do not cover the choice of those."
)

ONCE = "Nothing is drawn by chance in {rows}: every seed gives the same, so it is run with the first alone."


@dataclass(frozen=True, eq=False)
class Runs:
    """The finished seeds of one row on one set."""

    data: str
    model: str
    seeds: tuple[int, ...]
    results: tuple[dict[str, Any], ...]
    right: Bool[np.ndarray, "seeds documents"]
    settings: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, data: str, model: str, by_seed: Mapping[int, Sequence[dict[str, Any]]], settings: tuple[str, ...] = ()
    ) -> "Runs":
        """From the results of each seed: one, or one for each fold, which are pooled."""
        return cls(
            data=data,
            model=model,
            seeds=tuple(by_seed),
            results=tuple(pooled_result(results) for results in by_seed.values()),
            right=np.stack(
                [
                    np.concatenate([unpack(one["right"], one["documents"]) for one in folds])
                    for folds in by_seed.values()
                ]
            ),
            settings=settings,
        )


@dataclass(frozen=True)
class Against:
    """A row compared with the reference row."""

    difference: Difference
    mcnemar: float
    holm: float  # the bootstrap's p, corrected

    @property
    def counts(self) -> bool:
        return self.holm < LEVEL

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self.difference), "mcnemar_p": self.mcnemar, "holm_p": self.holm, "significant": self.counts}


@dataclass(frozen=True)
class TableRow:
    """Accuracies are shares of 1. `low` and `high` bound the error bar."""

    data: str
    model: str
    settings: tuple[str, ...]
    accuracy: float
    low: float
    high: float
    sd: float | None  # None with one seed
    seeds: int
    macro_f1: float
    valid_accuracy: float
    parameters: int
    best_epochs: tuple[int, ...]
    accuracies: tuple[float, ...]  # by seed
    commits: tuple[str, ...]  # at which the seeds were run
    training_seconds: float
    words_per_second: float
    documents_per_second: float
    best: bool
    against: Against | None  # None for the reference itself, and where it is missing

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "against": None if self.against is None else self.against.to_dict()}


@dataclass(frozen=True)
class Missing:
    """A row that has no place on a set, or failed there."""

    data: str
    model: str
    why: str


@dataclass(frozen=True)
class ComparisonTable:
    """All rows on all sets, the rows that are missing and why, and how it was made."""

    sets: dict[str, dict[str, Any]]  # by name: what `prepare_data` found
    rows: tuple[TableRow, ...]
    missing: tuple[Missing, ...]
    reference: str
    seeds: tuple[int, ...]
    settings: dict[str, Any]  # what was set for all rows
    made_by: dict[str, Any] = field(default_factory=dict)  # command, commit, versions, shape of the machine
    failed: tuple[str, ...] = ()  # the runs that this call tried in vain, by name; `missing` says why
    once: tuple[str, ...] = ()  # the rows to which seeds are nothing

    def of(self, data: str) -> list[TableRow]:
        return [row for row in self.rows if row.data == data]

    @property
    def method(self) -> str:
        once = [name for name in self.once if any(row.model == name for row in self.rows)]
        parts = [METHOD, ONCE.format(rows=" and in ".join(once)) if once else ""]
        parts.append(FOLDS if any("folds" in found for found in self.sets.values()) else "")
        return " ".join(filter(None, parts))

    def missing_of(self, data: str) -> list[tuple[str, str]]:
        """The rows that are not there, by name and joined by commas, and why; one for each reason, of which a row may
        have several."""
        reasons: dict[str, list[str]] = {}
        for one in self.missing:
            if one.data == data:
                reasons.setdefault(one.why, []).append(one.model)
        return [(", ".join(models), why) for why, models in reasons.items()]

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": [row.to_dict() for row in self.rows],
            "missing": [asdict(one) for one in self.missing],
            "reference": self.reference,
            "seeds": list(self.seeds),
            "method": self.method,
            "sets": self.sets,
            "settings": self.settings,
            "made_by": self.made_by,
        }


def table_rows(runs: Sequence[Runs], reference: str) -> list[TableRow]:
    """The rows of one set, in the order given."""
    base = next((one for one in runs if one.model == reference), None)
    others = [one for one in runs if one is not base]
    against: dict[str, Against] = {}
    if base is not None:
        differences = [paired_bootstrap(one.right, base.right) for one in others]
        corrected = holm([difference.p for difference in differences])
        for one, difference, p in zip(others, differences, corrected, strict=True):
            against[one.model] = Against(difference, mcnemar_of_seeds(one.right, base.right), p)
    best = best_row(runs)
    return [_table_row(one, one.model == best, against.get(one.model)) for one in runs]


def best_row(runs: Sequence[Runs]) -> str | None:
    """The row that is significantly better than every other; None where there is no such row."""
    if len(runs) < 2:
        return None
    leader = max(runs, key=lambda one: one.right.mean())
    ps = [paired_bootstrap(leader.right, one.right).p for one in runs if one is not leader]
    return leader.model if max(holm(ps)) < LEVEL else None


def _table_row(runs: Runs, best: bool, against: Against | None) -> TableRow:
    accuracies = tuple(float(result["accuracy"]) for result in runs.results)
    low, high = accuracy_interval(runs.right)

    def mean(key: str) -> float:
        return float(np.mean([result[key] for result in runs.results]))

    def time(key: str) -> float:
        return float(np.mean([result["times"][key] for result in runs.results]))

    return TableRow(
        data=runs.data,
        model=runs.model,
        settings=runs.settings,
        accuracy=float(np.mean(accuracies)),
        low=low,
        high=high,
        sd=float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None,
        seeds=len(accuracies),
        macro_f1=mean("macro_f1"),
        valid_accuracy=mean("valid_accuracy"),
        parameters=round(mean("parameters")),
        best_epochs=tuple(result["best_epoch"] for result in runs.results),
        accuracies=accuracies,
        commits=tuple(result["times"].get("commit", "unknown") for result in runs.results),
        training_seconds=time("training_seconds"),
        words_per_second=time("words_per_second"),
        documents_per_second=time("documents_per_second"),
        best=best,
        against=against,
    )


HEAD = (
    "model", "accuracy %", "sd", "seeds", "95 %", "macro-F1 %", "vs reference", "p", "McNemar p",
    "parameters", "training s", "words/s", "documents/s",
)  # fmt: skip


def render_markdown(table: ComparisonTable) -> str:
    """The table of each set, then what the figures mean and how they were made."""
    parts = ["# Comparison\n"]
    for name, found in table.sets.items():
        parts.append(f"## {plain(name)}\n\n{describe_set(found)}\n")
        if rows := table.of(name):
            parts.append(rows_table(rows, table.reference))
        missing = table.missing_of(name)
        parts += [f"- {plain(models)}: {plain(why)}" for models, why in missing]
        if missing:
            parts.append("")
    parts.append(f"**bold**: best, significantly so. Reference: {plain(table.reference)}. {table.method}\n")
    parts.append(describe_making(table))
    return "\n".join(parts)


def rows_table(rows: Sequence[TableRow], reference: str, head: Sequence[str] = HEAD) -> str:
    """The rows of one set as Markdown; `head` picks columns of `row_cells`."""
    return markdown_table(head, [[row_cells(row, reference)[name] for name in head] for row in rows])


def row_cells(row: TableRow, reference: str) -> dict[str, str]:
    """What is shown of a row, by the names of the columns."""
    against, accuracy = row.against, percent(row.accuracy)
    difference = "reference" if row.model == reference else "-"
    if against is not None:
        difference = f"{100 * against.difference.difference:+.1f}{' *' if against.counts else ''}"
    return {
        "model": plain(row.model),
        "accuracy %": f"**{accuracy}**" if row.best else accuracy,
        "sd": "-" if row.sd is None else percent(row.sd),
        "seeds": str(row.seeds),
        "95 %": f"{percent(row.low)}-{percent(row.high)}",
        "macro-F1 %": percent(row.macro_f1),
        "vs reference": difference,
        "p": "-" if against is None else p_value(against.difference.p),
        "McNemar p": "-" if against is None else p_value(against.mcnemar),
        "parameters": f"{row.parameters:,}",
        "training s": f"{row.training_seconds:,.0f}",
        "words/s": f"{row.words_per_second:,.0f}",
        "documents/s": f"{row.documents_per_second:,.0f}",
    }


def terminal_tables(table: ComparisonTable) -> str:
    """The table of each set, for the terminal."""
    head = [name for name in HEAD if name not in ("seeds", "McNemar p", "training s", "documents/s")]
    parts = []
    for name, found in table.sets.items():
        shown = [
            [row_cells(row, table.reference)[column].replace("**", "") for column in head] for row in table.of(name)
        ]
        for line, row in zip(shown, table.of(name), strict=True):
            line[0] = row.model + " (best)" * row.best
        told = ["", *head[1:]]
        told[head.index("vs reference")] = f"vs {table.reference}"
        documents = found["parts"]["test"]["documents"]
        parts.append(f"{name} ({documents:,} test documents)\n{aligned([told, *shown])}")
        parts += [f"{models}: {why}" for models, why in table.missing_of(name)]
    return "\n\n".join(parts)


def describe_set(found: Mapping[str, Any]) -> str:
    """One line: documents, classes, the split, and the accuracy of the commonest class."""
    train, valid, test = (found["parts"][name]["documents"] for name in ("train", "valid", "test"))
    if folds := found.get("folds"):
        told = (
            f"{test:,} documents, each tested once in one of {folds} folds, with {train:,} to train on and {valid:,} "
        )
        told += "to validate; "
    else:
        told = f"{train:,} documents to train on, {valid:,} to validate, {test:,} to test; "
    told += f"{len(found['classes'])} classes; split: {found['how']}."
    if left_out := found["left_out"]:
        told += " Left out: " + ", ".join(f"{n:,} rows of {plain(name)!r}" for name, n in left_out.items()) + "."
    if found["majority"] is not None:
        told += f" Commonest class: {percent(found['majority'])} %."
    if found.get("settings"):
        told += f" Set for all rows: {' '.join(found['settings'])}."
    return told


def describe_making(table: ComparisonTable) -> str:
    """A list: command, commits, machine, seeds and settings."""
    made, settings = table.made_by, table.settings
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    lines = [
        f"command: `{made.get('command', '')}`",
        f"commit (of each row in the JSON): {made['commit']}; {versions}",
        f"machine: {made['machine']}",
        f"seeds: {', '.join(map(str, table.seeds))}; preset {settings['preset']}"
        + (f", config {settings['config']}" if settings["config"] else "")
        + (f", set {' '.join(settings['set'])}" if settings["set"] else "")
        + (f"; vectors {settings['vectors']}" if settings["vectors"] else "; no pretrained vectors"),
    ]
    return "".join(f"- {line}\n" for line in lines)
