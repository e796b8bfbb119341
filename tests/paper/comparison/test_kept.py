"""Rows of an earlier table whose runs are gone."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.comparison.kept import keep, read_table
from emhrnn.paper.comparison.markdown import render_markdown
from emhrnn.paper.comparison.table import KEPT, Missing, Table
from tests.paper.comparison.test_table import runs, table

ORDER = ["base", "a", "b", "c"]


def as_read(earlier: Table, folder: Path) -> dict[str, Any]:
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
        with pytest.raises(DataError, match=r"bad\.json is no table of a comparison; give the table\.json"):
            read_table(tmp_path / "bad.json")
