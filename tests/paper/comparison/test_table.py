"""Means, spreads and significance from runs, the three renderings, and rows of an earlier table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison.report import render_html, render_markdown, terminal_tables
from emhrnn.paper.comparison.table import KEPT, ComparisonTable, Missing, Runs, best_row, keep, read_table, table_rows
from tests.explain.browser import chromium


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
    for told in (render_markdown(made), render_html(made), terminal_tables(made)):
        assert "a: seed 0 failed: no" in told
        assert "a: seed 1 failed: no" in told


EVIL = "<script>alert(1)</script>\u202e"


def test_the_page_is_inert_whatever_the_names(tmp_path: Path) -> None:
    made = table(runs("base", 0.6, 0.62), runs(EVIL, 0.7, 0.71), missing=(Missing("d", EVIL, EVIL),))
    page = render_html(made)
    assert page.count("<script>") == 1  # ours
    assert "alert(1)</script>" not in page
    assert "\u202e" not in page
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "")


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    path = tmp_path / "table.html"
    path.write_text(render_html(table(runs("base", 0.6, 0.62), runs("low", 0.4, 0.41), runs("high", 0.7, 0.71))))
    with chromium() as browser:
        errors: list[str] = []
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.on("console", lambda message: errors.append(message.text))
        page.goto(path.as_uri())
        models = "[...document.querySelectorAll('.compare tbody th')].map(th => th.dataset.value)"
        assert page.evaluate(models) == ["base", "low", "high"]
        page.get_by_role("button", name="accuracy").click()
        assert page.evaluate(models) == ["high", "base", "low"]
        page.get_by_role("button", name="accuracy").click()
        assert page.evaluate(models) == ["low", "base", "high"]
        page.get_by_role("button", name="model").click()
        assert page.evaluate(models) == ["base", "high", "low"]
        assert errors == []  # the policy admits the style and the script
        page.set_viewport_size({"width": 360, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        static = browser.new_context(java_script_enabled=False).new_page()
        static.goto(path.as_uri())
        assert static.get_by_role("button").count() == 0
        assert static.get_by_role("row").count() == 4


ORDER = ["base", "a", "b", "c"]


def as_read(earlier: ComparisonTable, folder: Path) -> dict[str, Any]:
    path = folder / "table.json"
    path.write_text(json.dumps(earlier.to_dict()))
    return read_table(path)


def test_rows_that_are_missing_stay_and_others_are_replaced(tmp_path: Path) -> None:
    lacks = Missing("d", "b", "not done: seed 1, 2")
    earlier = table(runs("base", 0.60), runs("a", 0.5), runs("b", 0.7), runs("c", 0.4, 0.4), missing=(lacks,))
    now = table(
        runs("base", 0.61), runs("c", 0.8), missing=(Missing("d", "a", "not done"), Missing("d", "b", "not done: all"))
    )
    both = keep(now, as_read(earlier, tmp_path), ORDER)
    assert [(row.model, row.kept, row.accuracy) for row in both.rows] == [
        ("base", False, 0.61),
        ("a", True, 0.5),
        ("b", True, 0.7),
        ("c", True, 0.4),  # two seeds are more than one
    ]
    assert both.missing == (lacks,)  # of a, nothing is missing that its own table missed
    told = render_markdown(both)
    assert "| a † | 50.0 |" in told
    assert KEPT in told
    assert KEPT not in render_markdown(now)


def test_comparisons_are_paired_where_both_rows_are_of_one_table(tmp_path: Path) -> None:
    """3 points on 1,000 documents, all errors in common: certain if paired, nothing if not."""
    earlier = table(runs("base", 0.60), runs("a", 0.63))
    paired = as_read(earlier, tmp_path)
    first = keep(table(runs("b", 0.5)), paired, ORDER)
    base, a, b = first.rows
    assert (base.kept, a.kept, b.kept) == (True, True, False)
    assert a.against is not None
    assert a.against.mcnemar is not None
    assert a.against.counts
    assert b.against is not None
    assert b.against.mcnemar is None
    assert b.against.difference.difference == pytest.approx(-0.1)
    assert b.against.counts
    assert a.best
    second = keep(table(runs("base", 0.60)), paired, ORDER)
    against = second.rows[1].against
    assert against is not None
    assert not against.counts
    assert 0.1 < against.difference.p < 0.3
    assert not second.rows[1].best


def test_differences_from_another_reference_are_not_taken_over(tmp_path: Path) -> None:
    earlier = as_read(table(runs("base", 0.60), runs("a", 0.70), runs("b", 0.65)), tmp_path)
    both = keep(replace(table(runs("c", 0.5)), reference="a"), earlier, ORDER)
    found = {row.model: row.against for row in both.rows}
    assert found["a"] is None
    for model, difference in (("base", -0.10), ("b", -0.05), ("c", -0.20)):
        against = found[model]
        assert against is not None
        assert against.difference.difference == pytest.approx(difference)
        assert against.mcnemar is None


def test_a_kept_row_is_best_only_if_the_new_ones_allow_it(tmp_path: Path) -> None:
    earlier = as_read(table(runs("base", 0.60), runs("a", 0.70)), tmp_path)
    assert [row.model for row in keep(table(runs("b", 0.6)), earlier, ORDER).rows if row.best] == ["a"]
    assert [row.model for row in keep(table(runs("b", 0.69)), earlier, ORDER).rows if row.best] == []
    assert [row.model for row in keep(table(runs("b", 0.80)), earlier, ORDER).rows if row.best] == ["b"]


def test_tables_of_old_told_their_commits_together(tmp_path: Path) -> None:
    earlier = as_read(table(runs("base", 0.6), runs("a", 0.5)), tmp_path)
    earlier["made_by"]["commit"] = "abc, def"
    for row in earlier["rows"]:
        del row["commits"]
    both = keep(table(runs("base", 0.6)), earlier, ORDER)
    assert both.rows[1].commits == ("abc", "def")
    assert both.made_by["commit"] == "abc, def, unknown"


def test_other_documents_and_settings_are_refused(tmp_path: Path) -> None:
    now = table(runs("base", 0.6))
    earlier = as_read(now, tmp_path)
    earlier["sets"]["d"]["parts"]["test"]["sha256"] = "other"
    with pytest.raises(ConfigError, match="the earlier table is of other test documents of d; leave out --keep"):
        keep(now, earlier, ORDER)
    earlier = as_read(now, tmp_path)
    earlier["settings"]["set"] = ["training.epochs=9"]
    with pytest.raises(ConfigError, match=r"d: the settings of all rows were .*epochs=9.* in the earlier table"):
        keep(now, earlier, ORDER)


def test_what_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.json cannot be read"):
        read_table(tmp_path / "none.json")
    for text in ("[", "[]", "{}", "3"):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DataError, match=r"bad\.json is not a table of a comparison; give the table\.json"):
            read_table(tmp_path / "bad.json")
