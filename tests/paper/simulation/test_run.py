"""The whole simulation in small, as a user runs it: table, figures, resumption, and what it says to mistakes."""

import json
from dataclasses import replace

import pytest

from emhrnn.errors import ConfigError, TrainingError
from emhrnn.paper.jobs import HowToRun
from emhrnn.paper.simulation import TRUE_Z, SimulationPlan, SimulationSizes, simulate
from emhrnn.paper.simulation.learners import Schedule
from emhrnn.paper.simulation.table import RecoveryTable, draw_recovery, make_allowed, make_row

TINY = SimulationSizes(train=40, test=10, rounds=2)


def result(test, seconds=1.0):
    measured = {
        "free": test - 0.1,
        "all": test,
        "free_with_label": test,
        "all_with_label": test,
        "log_likelihood": -0.5,
    }
    return {"train": measured, "test": measured, "seconds": seconds}


def test_rows_are_means_over_seeds_in_percent():
    row = make_row("state", "exact", [result(0.97), result(0.99)])
    assert (row.train, row.test, row.test_sd, row.seeds) == (98.0, 98.0, pytest.approx(1.414, abs=1e-3), 2)
    assert row.test_free == 88.0
    assert row.tests == (97.0, 99.0)
    assert row.log_likelihood == -0.5
    assert make_row("state", "exact", [result(0.97)]).test_sd is None


def test_a_method_without_posterior_has_no_figures_with_the_label():
    plain = {"train": {"free": 0.5, "all": 0.6}, "test": {"free": 0.5, "all": 0.6}, "seconds": 1.0}
    row = make_row("vocabulary", "hm-rnn", [plain])
    assert row.test_with_label is None
    allowed = make_allowed("vocabulary", [{"label_entropy": 2.3, "information": 0.5, "free": 0.6, "all": 0.68}])
    text = RecoveryTable({"command": "emhrnn"}, [row], [allowed]).to_markdown()
    assert "| HM-RNN | 60.0 | 60.0 | - | 50.0 | - | - | - | - | 1 | 1 | 90.1 |" in text
    assert "recovers 68.0 %" in text


def test_a_change_of_one_kind_of_learning_leaves_the_jobs_of_others_done():
    other = SimulationSizes(rounds=3)
    assert SimulationSizes().arguments("vocabulary", "exact") == other.arguments("vocabulary", "exact")
    assert SimulationSizes().arguments("state", "exact") != other.arguments("state", "exact")
    assert SimulationSizes.from_arguments(other.arguments("state", "exact")).rounds == 3


@pytest.mark.usefixtures("in_this_process")
def test_runs_writes_and_does_nothing_twice(tmp_path):
    plan = SimulationPlan(readings=("state",), methods=("exact",), seeds=1, sizes=TINY)
    lines = []
    report = lambda plan: simulate(plan, tmp_path / "so-far", tmp_path / "jobs", HowToRun(report=True))  # noqa: E731
    run = lambda: simulate(plan, tmp_path, tmp_path / "jobs", HowToRun(say=lines.append))  # noqa: E731
    with pytest.raises(TrainingError, match="no job of the simulation came to its end"):
        report(plan)
    first = run()
    assert len(lines) == 2  # the method and the oracle
    assert run().to_dict() == first.to_dict()
    more = report(replace(plan, seeds=3)).to_dict()
    assert more["unfinished"].startswith("4 of 6 jobs")
    assert more["rows"] == first.to_dict()["rows"]
    assert len(lines) == 2
    (row,) = json.loads((tmp_path / "table1.json").read_text())["rows"]
    assert {"reading", "method", "train", "test", "test_sd", "seeds"} <= row.keys()
    assert 50 <= row["test"] <= 100
    assert "EM-HRNN, exact" in (tmp_path / "table1.md").read_text()
    assert "<svg" in (tmp_path / "table1-recovery.svg").read_text()


@pytest.mark.usefixtures("in_this_process")
def test_the_training_labels_pick_the_learning_rate_of_every_row(tmp_path):
    sizes = replace(TINY, schedule=Schedule(epochs=2, documents=20, learning_rates=(1e-9, 2e-2)))
    plan = SimulationPlan(readings=("vocabulary",), methods=("hm-rnn", "local", TRUE_Z), seeds=1, sizes=sizes)
    rows = {row.method: row for row in simulate(plan, tmp_path, tmp_path / "jobs", HowToRun()).rows}
    assert rows[TRUE_Z].test == 100.0
    assert rows[TRUE_Z].test_with_label is None
    for method, row in rows.items():
        told = json.loads((tmp_path / "jobs" / f"vocabulary-{method}-10.json").read_text())["result"]
        tried = {float(rate): one["log_likelihood"] for rate, one in told["tried"].items()}
        assert told["learning_rate"] == max(tried, key=tried.get) == 2e-2
        assert told["train"]["log_likelihood"] == tried[2e-2]
        assert row.label_accuracy == pytest.approx(100 * told["test"]["label_accuracy"], abs=1e-3)


def test_rows_are_told_before_the_oracle_was_asked(tmp_path):
    """It comes last of each seed; a report may be made before, or it may have failed."""
    table = RecoveryTable({"command": "emhrnn"}, [make_row("state", "exact", [result(0.97)])], [])
    assert "## state\n\n| method |" in table.to_markdown()
    assert "| EM-HRNN, exact | 97.0 | 97.0 |" in table.to_markdown()
    draw_recovery(table, {("state", "exact"): [[{"epoch": 1, "test": 0.97}]]}, tmp_path / "recovery.svg")
    assert "<svg" in (tmp_path / "recovery.svg").read_text()


def test_mistakes_are_named():
    with pytest.raises(ConfigError, match="unknown reading 'stat'; use one or more of independent, state, vocabulary"):
        SimulationPlan(readings=("stat",))
    with pytest.raises(ConfigError, match="unknown method 'window-3'; use one or more of hm-rnn"):
        SimulationPlan(methods=("window-3",))
    with pytest.raises(ConfigError, match="0 seeds; use at least 1"):
        SimulationPlan(seeds=0)
