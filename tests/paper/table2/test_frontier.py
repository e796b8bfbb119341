"""The figure of accuracy against training time."""

from dataclasses import replace
from pathlib import Path

import pytest

from emhrnn.paper.comparison.table import TableRow
from emhrnn.paper.table2.frontier import OURS, best_for_budgets, draw_frontier

ROW = TableRow(
    data="d", model="m", settings=(), accuracy=0.5, low=0.4, high=0.6, sd=None, seeds=1, macro_f1=0.5,
    valid_accuracy=0.5, parameters=1, best_epochs=(0,), accuracies=(0.5,), commits=(), training_seconds=60.0,
    words_per_second=1.0, documents_per_second=1.0, best=False, against=None,
)  # fmt: skip


def row(model: str, seconds: float, accuracy: float) -> TableRow:
    return replace(ROW, model=model, training_seconds=float(seconds), accuracy=accuracy)


def test_the_frontier_leaves_out_what_a_cheaper_row_reaches() -> None:
    rows = [row("slow", 600, 0.9), row("cheap", 10, 0.7), row("worse", 60, 0.6), row("level", 90, 0.7)]
    assert [one.model for one in best_for_budgets(rows)] == ["cheap", "slow"]


def test_the_figure_names_the_rows_of_the_frontier(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [row(OURS, 60, 0.8), row("cheap", 10, 0.7), row("dear", 600, 0.6)]
    draw_frontier({"a": rows, "b": rows}, tmp_path / "f.svg")
    svg = (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert svg.count(f"<!-- {OURS} -->") == 2
    assert "<!-- cheap -->" in svg
    assert "<!-- dear -->" not in svg
    draw_frontier({"a": rows, "b": rows}, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "f.svg").read_bytes()
