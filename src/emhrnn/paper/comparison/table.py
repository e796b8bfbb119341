"""The results of a comparison as data: means and spreads over seeds, significance, and rows of an earlier table.

Rows of an earlier table on the same data, whose runs are gone, can stay with their figures, marked with a dagger. Which
documents they had right is not known any more. So they are compared with new rows by their intervals, as if the two had
been tested on different documents; that misses differences which the paired test would find, and makes up none.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.significance import (
    LEVEL,
    SAMPLES,
    Difference,
    Interval,
    accuracy_interval,
    holm,
    mcnemar_of_seeds,
    paired_bootstrap,
    unpaired,
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

KEPT = (
    "† of an earlier table, with the defaults and on the machine of then, whose runs are gone: compared with rows that "
    "have no † by the intervals alone, which misses more differences than the paired test."
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


@dataclass(frozen=True)
class Against:
    """A row compared with the reference row."""

    difference: Difference
    mcnemar: float | None  # None where the two cannot be paired
    holm: float  # the bootstrap's p, corrected

    @property
    def counts(self) -> bool:
        return self.holm < LEVEL

    def to_dict(self) -> dict[str, Any]:
        return {**self.difference.to_dict(), "mcnemar_p": self.mcnemar, "holm_p": self.holm, "significant": self.counts}


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
    kept: bool = False  # of an earlier table, whose runs are gone

    @property
    def told(self) -> str:
        """Its name as it is shown."""
        return self.model + " †" * self.kept

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
        return " ".join(filter(None, [*parts, KEPT if any(row.kept for row in self.rows) else ""]))

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


def read_table(path: Path) -> dict[str, Any]:
    """A table that `compare` or `paper table2` wrote as JSON.

    Raises:
        DataError: it is none.
    """
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        return {key: table[key] for key in ("rows", "missing", "reference", "sets", "settings", "made_by")}
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}); give a table.json of an earlier comparison"
        ) from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path} is not a table of a comparison; give the table.json or table2.json of one") from None


def keep(table: ComparisonTable, earlier: dict[str, Any], order: Sequence[str]) -> ComparisonTable:
    """The table with those rows of the earlier one that it lacks, or has with fewer seeds. `order` names the rows.

    Raises:
        ConfigError: the earlier table is of other documents or settings, so that its rows cannot stand beside these.
    """
    rows: list[TableRow] = []
    missing: list[Missing] = []
    for data in table.sets:
        if data in earlier["sets"]:
            _check_same(data, table, earlier)
        own = {row.model: row for row in table.of(data)}
        before = [_earlier_row(entry, earlier["made_by"]) for entry in _of(earlier["rows"], data)]
        if earlier["reference"] != table.reference:
            before = [replace(row, against=None) for row in before]
        kept = [row for row in before if row.model not in own or row.seeds > own[row.model].seeds]
        names = {row.model for row in kept}
        merged = [row for name, row in own.items() if name not in names] + kept
        rows += _compared(sorted(merged, key=lambda row: _place(order, row.model)), table.reference)
        missing += [one for one in table.missing if one.data == data and one.model not in names]
        missing += [Missing(**one) for one in _of(earlier["missing"], data) if one["model"] in names]
    commits = ", ".join(sorted({commit for row in rows for commit in row.commits}))
    return replace(table, rows=tuple(rows), missing=tuple(missing), made_by={**table.made_by, "commit": commits})


def _of(entries: Sequence[dict[str, Any]], data: str) -> list[dict[str, Any]]:
    return [one for one in entries if one["data"] == data]


def _place(order: Sequence[str], model: str) -> int:
    return order.index(model) if model in order else len(order)


def _check_same(data: str, table: ComparisonTable, earlier: dict[str, Any]) -> None:
    before, now = earlier["sets"][data], table.sets[data]
    for name, part in now["parts"].items():
        if before["parts"][name]["sha256"] != part["sha256"]:
            raise ConfigError(f"the earlier table is of other {name} documents of {data}; leave out --keep")
    for what, then, today in (
        ("its settings", before.get("settings", []), now.get("settings", [])),
        ("the settings of all rows", earlier["settings"], table.settings),
    ):
        if then != today:
            raise ConfigError(f"{data}: {what} were {then} in the earlier table, and are {today}; leave out --keep")


def _earlier_row(entry: dict[str, Any], made_by: dict[str, Any]) -> TableRow:
    """From JSON. Tables of old told the commits of all rows together."""
    fields = {name: entry[name] for name in TableRow.__dataclass_fields__ if name in entry}
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    found = entry["against"]
    against = None
    if found is not None:
        difference = Difference(*(found[name] for name in ("difference", "low", "high", "p")))
        against = Against(difference, found["mcnemar_p"], found["holm_p"])
    commits = tuple((made_by["commit"] or "unknown").split(", "))
    return TableRow(**{"commits": commits, **fields, "against": against, "kept": True})


def _compared(rows: Sequence[TableRow], reference: str) -> list[TableRow]:
    """With the reference, and with each other for the best; paired as far as that can be."""
    base = next((row for row in rows if row.model == reference), None)
    best = _best_of_all(rows)
    found = {row.model: against for row in rows if (against := _compared_with(row, base)) is not None}
    corrected = holm([against.difference.p for against in found.values()])
    told = {model: replace(found[model], holm=p) for model, p in zip(found, corrected, strict=True)}
    return [replace(row, best=row is best, against=told.get(row.model)) for row in rows]


def _compared_with(row: TableRow, base: TableRow | None) -> Against | None:
    if base is None or row is base:
        return None
    if row.kept == base.kept and row.against is not None:
        return row.against
    return Against(unpaired(_interval(row), _interval(base)), None, 1.0)


def _best_of_all(rows: Sequence[TableRow]) -> TableRow | None:
    """The leader, if the paired tests of its own table say so and the intervals of the other rows allow it."""
    leader = max(rows, key=lambda row: row.accuracy, default=None)
    if leader is None or len(rows) < 2:
        return None
    strangers = [row for row in rows if row.kept != leader.kept]
    first_of_its_own = leader.best or len(strangers) == len(rows) - 1
    ps = [unpaired(_interval(leader), _interval(row)).p for row in strangers]
    return leader if first_of_its_own and max(holm(ps), default=0.0) < LEVEL else None


def _interval(row: TableRow) -> Interval:
    return Interval(row.accuracy, row.low, row.high)
