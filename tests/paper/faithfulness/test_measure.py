"""`emhrnn paper faithfulness` on a tiny run; its jobs run in this process."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn.paper.faithfulness import measure
from emhrnn.paper.faithfulness.measure import METHODS, drawn_texts
from emhrnn.paper.jobs import JobSpec, Outcome
from emhrnn.training.data import Named
from tests.behaviour.commands import Cli, write_rows


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_jobs(function: Any, jobs: list[JobSpec], folder: Path, **_: Any) -> list[Outcome]:
        assert not any("/" in json.dumps(job.arguments) for job in jobs)  # a folder that moves keeps its jobs
        return [Outcome(job.name, function(job.given, folder)) for job in jobs]

    monkeypatch.setattr(measure, "run_jobs", run_jobs)
    monkeypatch.setattr(measure, "GROUP", 3)


def test_the_table_has_every_explanation_at_every_level(cli: Cli, made: Path, tmp_path: Path) -> None:
    told = cli.ok("paper", "faithfulness", made / "run", made / "test.jsonl", "--out", tmp_path, "--documents", "5").out
    table = json.loads((tmp_path / "faithfulness.json").read_text())
    assert len(table["rows"]) == 18
    assert {row["method"] for row in table["rows"]} == set(METHODS)
    for row in table["rows"]:
        for what in ("comprehensiveness", "sufficiency"):
            mean = row[what]
            assert mean["low"] <= mean["value"] <= mean["high"]
            assert mean["value"] == pytest.approx(np.mean(row["curve"][what]), abs=1e-6)
    by_words = {row["method"]: row for row in table["rows"] if row["level"] == "word"}
    assert by_words["occlusion"]["forward"] > 15
    assert by_words["effect"]["forward"] == by_words["effect"]["backward"] == 1
    markdown = (tmp_path / "faithfulness.md").read_text()
    assert markdown.strip() in told
    assert "- documents: 5 drawn with seed 0" in markdown
    assert str(made) not in markdown
    assert "<svg" in (tmp_path / "faithfulness.svg").read_text()


def test_the_same_seed_draws_the_same_documents(made: Path) -> None:
    data = Named(path=made / "test.jsonl")
    assert drawn_texts(data, 4, 1) == drawn_texts(data, 4, 1)
    assert drawn_texts(data, 4, 1) != drawn_texts(data, 4, 2)
    assert len(drawn_texts(data, 100, 0)) == 8


def test_what_cannot_be_measured(cli: Cli, made: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "out")
    arguments = ("paper", "faithfulness", made / "run", made / "test.jsonl", *out, "--report")
    assert "nothing is done yet" in cli.error(*arguments)
    assert "1 documents" in cli.error(
        "paper", "faithfulness", made / "run", made / "test.jsonl", *out, "--documents", "1"
    )
    assert "does not exist" in cli.error("paper", "faithfulness", made / "run", tmp_path / "none.csv", *out)
    assert "no such run" in cli.error("paper", "faithfulness", tmp_path / "none", made / "test.jsonl", *out)
    empty = write_rows(tmp_path / "empty.jsonl", [("<br>", "good"), (" ", "bad")])
    assert "no text with words" in cli.error("paper", "faithfulness", made / "run", empty, *out)
