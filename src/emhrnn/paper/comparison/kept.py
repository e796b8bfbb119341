"""Rows of an earlier table on the same data, whose runs are gone: they stay with their figures, marked †.

Which documents they had right is not known any more. So they are compared with new rows by their intervals, as if the
two had been tested on different documents; that misses differences which the paired test would find, and makes up none.
Rows of the earlier table keep what it says of them and its reference, where that is the reference of this one, too.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.significance import LEVEL, Difference, Interval, holm, unpaired
from emhrnn.paper.comparison.table import Against, Missing, Table, TableRow


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
        raise DataError(f"{path} is no table of a comparison; give the table.json or table2.json of one") from None


def keep(table: Table, earlier: dict[str, Any], order: Sequence[str]) -> Table:
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
        before = [_row(entry, earlier["made_by"]) for entry in _of(earlier["rows"], data)]
        if earlier["reference"] != table.reference:
            before = [replace(row, against=None) for row in before]
        kept = [row for row in before if _is_more(row, own.get(row.model))]
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


def _is_more(row: TableRow, own: TableRow | None) -> bool:
    return own is None or row.seeds > own.seeds


def _check_same(data: str, table: Table, earlier: dict[str, Any]) -> None:
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


def _row(entry: dict[str, Any], made_by: dict[str, Any]) -> TableRow:
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
    best = _best(rows)
    found = {row.model: against for row in rows if (against := _against(row, base)) is not None}
    corrected = holm([against.difference.p for against in found.values()])
    told = {model: replace(found[model], holm=p) for model, p in zip(found, corrected, strict=True)}
    return [replace(row, best=row is best, against=told.get(row.model)) for row in rows]


def _against(row: TableRow, base: TableRow | None) -> Against | None:
    if base is None or row is base:
        return None
    if row.kept == base.kept and row.against is not None:
        return row.against
    return Against(unpaired(_interval(row), _interval(base)), None, 1.0)


def _best(rows: Sequence[TableRow]) -> TableRow | None:
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
