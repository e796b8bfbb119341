"""`emhrnn paper segmentations`."""

from pathlib import Path

from tests.behaviour.commands import Cli, tiny


def test_other_runs_are_refused(cli: Cli, made: Path, run: Path) -> None:
    refused = cli.error("paper", "segmentations", run, made / "test.jsonl")
    assert "is not a run of evidence with learned phrases" in refused


def test_the_shown_phrases_of_evidence_are_compared_with_the_sum(cli: Cli, made: Path, tmp_path: Path) -> None:
    run, test = tmp_path / "evidence", made / "test.jsonl"
    cli.ok("train", made / "reviews.csv", "--out", run, *tiny("evidence"))
    found = cli.ok("paper", "segmentations", run, test, "--json").json
    assert found["exact"] == cli.ok("evaluate", run, test, "--json").json["accuracy"]
    assert abs(found["exact"] - found["shown"]) <= found["differs"]
    assert 0 <= found["best"] <= 1
    assert 1 <= found["words_per_phrase"] <= 6
    assert "by the best one alone" in cli.ok("paper", "segmentations", run, test).out
