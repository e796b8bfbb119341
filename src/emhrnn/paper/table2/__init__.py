"""The paper's Table 2: its rows by name, on its own sets where the user has them, else on named stand-ins; and three
kinds of numbers that must not be mixed: the paper's, those of the papers it cites, and ours.

plan.py     the rows: what the paper and the papers it cites print, and what is run
sets.py     the sets, by their published files; what to download, and whether it is whole
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from emhrnn.errors import ConfigError
from emhrnn.files import write_json, write_text
from emhrnn.paper.comparison import Protocol, compare
from emhrnn.paper.comparison.table import (
    ComparisonTable,
    TableRow,
    describe_making,
    describe_set,
    row_cells,
    rows_table,
)
from emhrnn.paper.jobs import HowToRun
from emhrnn.paper.reports import markdown_table, percent, plain, pyplot, save_svg, training_code
from emhrnn.paper.table2.plan import PAPER_ROWS, REFERENCE, YELP_15, table2_rows
from emhrnn.paper.table2.sets import COLUMNS, Family, Found, find_sets
from emhrnn.training.config import settings_of

BUDGETS = (1, 10, 60)  # minutes
APART = 0.5  # points of accuracy between two names, which would overlap
OURS = "Phrase evidence"
STANDS_IN = "stands in for Bert-base and is not comparable with its numbers"


@dataclass(frozen=True)
class Cell:
    """One of our numbers, with the printed ones of the same row, if they are of the same data."""

    row: TableRow
    paper: float | None
    published: float | None
    comparable: bool
    why: str

    def to_dict(self) -> dict[str, Any]:
        own = {"paper": self.paper, "published": self.published, "comparable": self.comparable, "why": self.why}
        return {**self.row.to_dict(), **own}


@dataclass(frozen=True)
class Table2:
    """Our table, and the sets it is of."""

    table: ComparisonTable
    found: Sequence[Found]
    quick: bool = False

    def cells(self, found: Found) -> list[Cell]:
        parts = self.table.sets[found.data.name]["parts"]
        documents = sum(part["documents"] for part in parts.values())
        return [_cell(row, found, documents, self.quick) for row in self.table.of(found.data.name)]

    def versions(self, found: Found) -> list[list[str]]:
        """The rows by the training code that their seeds are of; with one code throughout, one list."""
        by_code: dict[frozenset[str], list[str]] = {}
        for row in self.table.of(found.data.name):
            code = frozenset(training_code(commit) for commit in row.commits)
            by_code.setdefault(code, []).append(row.model)
        return list(by_code.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.table.to_dict(),
            "versions": {found.data.name: self.versions(found) for found in self.found},
            "rows": [cell.to_dict() for found in self.found for cell in self.cells(found)],
            "paper": {row.name: row.paper for row in PAPER_ROWS.values()},
            "published": {row.name: row.published for row in PAPER_ROWS.values() if row.published},
            "notes": {row.name: row.note for row in PAPER_ROWS.values() if row.note},
            "what": {found.data.name: found.what for found in self.found},
            "quick": self.quick,
        }


def _cell(row: TableRow, found: Found, documents: int, quick: bool) -> Cell:
    printed = PAPER_ROWS.get(row.model)
    if printed is None:
        return Cell(row, None, None, False, STANDS_IN if _stands_in(row) else "not a row of the paper")
    if found.column is None:
        return Cell(row, None, None, False, found.what)
    paper, published = printed.paper.get(found.column), printed.published.get(found.column)
    family = found.family(documents)
    wanted = printed.family(found.column)
    if quick:
        why = "a quick look at a few documents"
    elif paper is None and published is None:
        why = "the paper gives none"
    elif family is None:
        why = f"{documents:,} documents are not the set that the numbers are of"
    elif family != wanted:
        why = f"the printed number is of {_told(wanted)}, this is {_told(family)}"
    else:
        return Cell(row, paper, published, True, "the same set; splits and tuning may differ")
    return Cell(row, paper, published, False, why)


def _stands_in(row: TableRow) -> bool:
    """An encoder other than Bert-base, or one of which only the head was trained."""
    return row.model not in PAPER_ROWS and any(setting.startswith("model.pretrained=") for setting in row.settings)


def _told(family: Family) -> str:
    return {"tang": "Tang's set", "tang-ids": "Tang's smaller set with users", "zhang": "Zhang's balanced set"}[family]


def render_markdown(result: Table2) -> str:
    """table2.md."""
    table = result.table
    parts = ["# Table 2 of the paper\n"]
    if result.quick:
        parts.append("**A quick look: a few documents, one epoch. The figures mean nothing.**\n")
    parts += ["## What the paper prints\n", _printed("paper"), YELP_15 + "\n"]
    parts += ["## What the cited papers print, where it differs\n", _printed("published")]
    parts += [f"- {row.name}: {row.note}." for row in PAPER_ROWS.values() if row.note]
    parts.append("\n## Ours\n")
    stand_ins = {row.model: row.settings for row in table.rows if _stands_in(row)}
    parts += [f"{plain(name)} ({plain(', '.join(how))}) {STANDS_IN}.\n" for name, how in stand_ins.items()]
    for found in result.found:
        name = found.data.name
        parts.append(f"### {plain(name)}: {plain(found.what)}\n\n{describe_set(table.sets[name])}\n")
        parts.append(_ours(result.cells(found), table.reference, stands_alone=found.column is None))
        parts += _budgets(table.of(name))
        parts += [f"- {plain(models)}: {plain(why)}" for models, why in table.missing_of(name)]
        if len(versions := result.versions(found)) > 1:
            told = "; ".join(", ".join(map(plain, rows)) for rows in versions)
            many = len(versions)
            parts.append(f"- training code: {many} versions; rows may differ by more than their models: {told}")
        parts.append("")
    parts.append(f"**bold**: best, significantly so. Reference: {plain(table.reference)}. {table.method}\n")
    parts.append(describe_making(table))
    return "\n".join(parts)


def _budgets(rows: Sequence[TableRow]) -> list[str]:
    """What is best for so many minutes of training."""
    told = []
    for minutes in BUDGETS:
        if within := [row for row in rows if row.training_seconds <= 60 * minutes]:
            best = max(within, key=lambda row: row.accuracy)
            told.append(f"{minutes} min: {plain(best.model)} ({percent(best.accuracy)} %)")
    return [f"- highest accuracy within a training time of {'; '.join(told)}"] if told else []


def _printed(which: str) -> str:
    rows = []
    for row in PAPER_ROWS.values():
        numbers = row.paper if which == "paper" else row.published
        if numbers:
            rows.append([row.name, *(_number(numbers.get(column)) for column in COLUMNS)])
    return markdown_table(["method", *COLUMNS], rows)


def _ours(cells: Sequence[Cell], reference: str, *, stands_alone: bool) -> str:
    """A stand-in's numbers stand alone, so that nobody reads them beside those of other data."""
    head = ["model", "accuracy %", "sd", "seeds", "95 %", "macro-F1 %", "vs reference", "p", "parameters", "words/s"]
    if stands_alone:
        told = "These are other data than the paper's: not comparable with any number above.\n\n"
        return told + rows_table([cell.row for cell in cells], reference, head)
    rows = []
    for cell in cells:
        shown = row_cells(cell.row, reference)
        comparable = ("yes" if cell.comparable else "no") + f": {cell.why}"
        rows.append([*(shown[name] for name in head), _number(cell.paper), _number(cell.published), comparable])
    return markdown_table([*head, "paper", "published", "comparable"], rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


QUICK_ROWS = 300  # of each part
QUICK = ("training.epochs=1", "em.warmup_epochs=0", "model.means=50", "model.max_features=5000", "model.fit_epochs=1")


def reproduce_table2(
    data: Path,
    out: Path,
    *,
    protocol: Protocol,
    how: HowToRun,
    work: Path | None = None,
    sets: Sequence[str] = (),
    rows: Sequence[str] = (),
    pretrained: Path | None = None,
    quick: bool = False,
) -> Table2:
    """All rows of the paper, with TF-IDF and fastText, on the sets in the folder `data`. The runs are kept in `work`.

    Args:
        sets: names of some of the sets; by default the paper's own that are there, else the stand-ins.
        rows: names of some of the rows; by default all.
        pretrained: a folder with the weights of the row Bert-base, or of an encoder that stands in for it and is called
            by the folder's name; without, there is no such row. It is fine-tuned in one row, and frozen in another.
        quick: a few documents and one epoch, to see that everything works.
    """
    found = find_sets(data, sets)
    chosen = table2_rows(pretrained)
    names = [row.name for row in chosen]
    for name in rows:
        if name not in names:
            raise ConfigError(f"{name!r} is not a row of the table; give some of {', '.join(map(repr, names))}")
    chosen = [row for row in chosen if not rows or row.name in rows]
    if quick:
        found = [replace(one, data=replace(one.data, limit=(QUICK_ROWS,) * 3)) for one in found]
        known = {name for row in chosen for name in settings_of(row.model)}
        less = [one for one in QUICK if one.partition("=")[0] in known]
        protocol = replace(protocol, assignments=(*less, *protocol.assignments))
    table = compare(
        [one.data for one in found],
        chosen,
        work or out,
        protocol=protocol,
        how=how,
        reference=REFERENCE if any(row.name == REFERENCE for row in chosen) else None,
    )
    result = Table2(table, found, quick)
    write_json(out / "table2.json", result.to_dict())
    write_text(out / "table2.md", render_markdown(result))
    if find_spec("matplotlib") is not None:
        draw_frontier({one.data.name: [cell.row for cell in result.cells(one)] for one in found}, out / "frontier.svg")
    elif how.say is not None:
        how.say("frontier.svg (accuracy against training time) is left out: it needs matplotlib; install emhrnn[plots]")
    return result


# ------------------------------------------------------------------ frontier.svg: accuracy against minutes of training


def best_for_budgets(rows: Sequence[TableRow]) -> list[TableRow]:
    """The rows that no cheaper row reaches, from the cheapest on."""
    best: list[TableRow] = []
    for row in sorted(rows, key=lambda row: (row.training_seconds, -row.accuracy)):
        if not best or row.accuracy > best[-1].accuracy:
            best.append(row)
    return best


def draw_frontier(sets: dict[str, Sequence[TableRow]], path: Path) -> None:
    """One panel for each set. The rows of the frontier are named where names do not overlap; the others are points."""
    figure, panels = pyplot().subplots(1, len(sets), figsize=(5 * len(sets), 4.2), squeeze=False)
    for panel, (name, rows) in zip(panels[0], sets.items(), strict=True):
        _draw(panel, name, rows)
    panels[0][0].set_ylabel("test accuracy, %")
    save_svg(figure, path)


def _draw(panel: Any, name: str, rows: Sequence[TableRow]) -> None:
    best = best_for_budgets(rows)
    panel.set_xscale("log")
    for minutes in BUDGETS:
        panel.axvline(minutes, color="0.85", linewidth=1, zorder=0)
    panel.plot([_minutes(row) for row in best], [100 * row.accuracy for row in best], color="0.6", linewidth=1)
    named = 0.0
    for row in sorted(rows, key=lambda row: (row.model != OURS, -row.accuracy)):
        colour = "#b35806" if row.model == OURS else "#2166ac" if row in best else "0.7"
        panel.scatter([_minutes(row)], [100 * row.accuracy], color=colour, s=28, zorder=2)
        place = (_minutes(row), 100 * row.accuracy)
        if row in best and abs(place[1] - named) >= APART:
            named = place[1]
            side = "right" if place[0] > BUDGETS[1] / 2 else "left"
            panel.annotate(row.model, place, xytext=(0, 6), textcoords="offset points", fontsize=7, ha=side)
    panel.set_xticks(BUDGETS, [f"{minutes} min" for minutes in BUDGETS])
    panel.set_title(name, fontsize=10)
    panel.set_xlabel("training on one or two cores")
    panel.margins(x=0.25, y=0.12)


def _minutes(row: TableRow) -> float:
    return row.training_seconds / 60
