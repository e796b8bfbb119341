"""Means, spreads and significance from runs, and the renderings."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from emhrnn.paper.comparison.table import (
    ComparisonTable,
    Missing,
    Runs,
    best_row,
    render_markdown,
    table_rows,
    terminal_tables,
)


def runs(model: str, *accuracies: float, documents: int = 1000, shift: int = 0) -> Runs:
    right = np.stack([np.roll(np.arange(documents) < round(a * documents), shift) for a in accuracies])
    results: list[dict[str, Any]] = [
        {
            "accuracy": a, "macro_f1": a - 0.01, "valid_accuracy": a, "parameters": 100_000, "best_epoch": 2,
            "times": {"training_seconds": 90.0, "words_per_second": 1e4, "documents_per_second": 500.0},
        }
        for a in accuracies
    ]  # fmt: skip
    return Runs("d", model, tuple(range(len(accuracies))), tuple(results), right)


def table(*rows: Runs, reference: str = "base", missing: tuple[Missing, ...] = ()) -> ComparisonTable:
    part = {"documents": 1000, "words": 5000, "sha256": "", "skipped": {}}
    found = {
        "how": "the split column", "left_out": {"<unmatched>": 3}, "classes": ["a", "b"], "users": 0, "products": 0,
        "multi_label": False, "majority": 0.5, "parts": {"train": part, "valid": part, "test": part},
    }  # fmt: skip
    return ComparisonTable(
        sets={"d": found},
        rows=tuple(table_rows(rows, reference)),
        missing=missing,
        reference=reference,
        seeds=(0, 1),
        settings={"preset": "default", "config": None, "set": ["training.epochs=2"], "vectors": None},
        made_by={"command": "emhrnn compare <d>", "commit": None, "versions": {"emhrnn": "0"}, "machine": "2 cores"},
    )


def test_mean_and_spread_over_seeds() -> None:
    base, better = table_rows([runs("base", 0.6), runs("better", 0.70, 0.72)], "base")
    assert (base.sd, base.seeds, base.against) == (None, 1, None)
    assert better.accuracy == pytest.approx(0.71)
    assert better.sd == pytest.approx(0.02 / np.sqrt(2))
    assert better.low < 0.71 < better.high
    assert better.against is not None
    assert better.against.difference.difference == pytest.approx(0.11)
    assert better.against.counts
    assert better.against.mcnemar < 0.001


def test_the_method_names_rows_that_are_run_once_if_they_are_there() -> None:
    made = table(runs("base", 0.6, 0.7), runs("fixed", 0.6))
    assert "Nothing is drawn" not in replace(made, once=("gone",)).method
    told = replace(made, once=("gone", "fixed")).method
    assert "Nothing is drawn by chance in fixed: every seed gives the same, so it is run with the first alone." in told
    assert "gone" not in told


def test_best_is_marked_only_when_it_is_significant() -> None:
    assert best_row([runs("a", 0.60), runs("b", 0.602, shift=300)]) is None
    assert best_row([runs("a", 0.60), runs("b", 0.70)]) == "b"
    assert best_row([runs("a", 0.60), runs("b", 0.70), runs("c", 0.701, shift=3)]) is None  # b and c are alike
    assert best_row([runs("a", 0.60)]) is None


def test_a_reference_that_failed_leaves_no_comparison() -> None:
    (row,) = table_rows([runs("a", 0.6)], "base")
    assert row.against is None


def test_json_and_markdown() -> None:
    missing = tuple(Missing("d", name, "skipped: no ids") for name in ("cma", "basis-cust"))
    made = table(runs("base", 0.6, 0.6), runs("a|b", 0.7, 0.71), missing=missing)
    rows = json.loads(json.dumps(made.to_dict(), allow_nan=False))["rows"]
    needed = {"data", "model", "accuracy", "sd", "seeds", "macro_f1", "parameters", "words_per_second"}
    assert needed <= rows[1].keys()
    assert rows[1]["against"]["significant"] is True
    assert rows[1]["best"] is True
    told = render_markdown(made)
    assert "| a\\|b | **70.5** | 0.7 |" in told
    assert "+10.5 * | <0.001 |" in told
    assert "- cma, basis-cust: skipped: no ids" in told
    assert "`emhrnn compare <d>`" in told


def test_a_row_may_be_missing_for_several_reasons() -> None:
    """Each seed fails for its own: the last one hid the others."""
    made = table(runs("base", 0.6), missing=tuple(Missing("d", "a", f"seed {seed} failed: no") for seed in (0, 1)))
    for told in (render_markdown(made), terminal_tables(made)):
        assert "a: seed 0 failed: no" in told
        assert "a: seed 1 failed: no" in told
