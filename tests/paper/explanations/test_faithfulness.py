"""`emhrnn paper faithfulness` on tiny runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.explain.removal import LEVELS
from emhrnn.paper.explanations.faithfulness import drawn_texts
from emhrnn.paper.explanations.table import USUAL
from emhrnn.training.data import Named
from tests.behaviour.commands import Cli, write_rows


def test_the_table_has_every_method_at_every_level(cli: Cli, made: Path, tmp_path: Path) -> None:
    told = cli.ok("paper", "faithfulness", made / "run", made / "test.jsonl", "--out", tmp_path, "--documents", "5").out
    table = json.loads((tmp_path / "faithfulness.json").read_text())
    methods = set(USUAL) - {"evidence", "weights"}  # which em-hrnn does not have
    assert {(row["method"], row["level"]) for row in table["rows"]} == {(m, level) for m in methods for level in LEVELS}
    for row in table["rows"]:
        for what in ("comprehensiveness", "sufficiency"):
            mean = row[what]
            assert mean["low"] <= mean["value"] <= mean["high"]
            assert mean["value"] == pytest.approx(np.mean(row[f"{what} by share"]), abs=1e-6)
    assert [(row["method"], row["level"]) for row in table["rows"] if row["default"]] == [
        ("removal", level) for level in LEVELS
    ]
    markdown = (tmp_path / "faithfulness.md").read_text()
    assert "- data: 5 documents of test.jsonl" in markdown
    assert "comprehensiveness" in told
    assert str(made) not in markdown
    assert "<svg" in (tmp_path / "faithfulness.svg").read_text()


def test_the_same_seed_draws_the_same_documents(made: Path) -> None:
    data = Named(path=made / "test.jsonl")
    assert drawn_texts(data, 4, 1) == drawn_texts(data, 4, 1)
    assert drawn_texts(data, 4, 1) != drawn_texts(data, 4, 2)
    assert len(drawn_texts(data, 100, 0)) == 8


def test_what_cannot_be_measured(cli: Cli, made: Path, tmp_path: Path) -> None:
    def refused(run: Path, data: Path, *more: str) -> str:
        return cli.error("paper", "faithfulness", run, data, "--out", tmp_path / "out", *more)

    assert "at least 2" in refused(made / "run", made / "test.jsonl", "--documents", "1")
    assert "no explanation method 'tea'" in refused(made / "run", made / "test.jsonl", "--method", "tea")
    assert "does not exist" in refused(made / "run", tmp_path / "none.csv")
    assert "no such run" in refused(tmp_path / "none", made / "test.jsonl")
    empty = write_rows(tmp_path / "empty.jsonl", [("<br>", "good"), (" ", "bad")])
    assert "no text with words" in refused(made / "run", empty)
    assert not (tmp_path / "out").exists()
