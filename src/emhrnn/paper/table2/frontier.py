"""frontier.svg: accuracy against the minutes of training, for every row of table 2 on each set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emhrnn.paper.comparison.table import TableRow
from emhrnn.paper.plot import pyplot, save_svg

BUDGETS = (1, 10, 60)  # minutes
APART = 0.5  # points of accuracy between two names, which would overlap
OURS = "Phrase evidence"


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
