"""`emhrnn info` on data and on runs."""

from pathlib import Path

from tests.behaviour.commands import Cli, write_reviews


def test_info_of_data_shows_what_would_be_taken(cli: Cli, made: Path, tmp_path: Path) -> None:
    shown = cli.ok("info", made / "reviews.csv").out
    assert "text = text, label = label" in shown
    lines = dict(line.split("  ", 1) for line in shown.splitlines())
    assert lines["first label"].strip() == "bad"
    (tmp_path / "a.csv").write_text("text,stars,sentiment\nx,1,2\n")
    assert "could be 'stars' or 'sentiment'" in cli.ok("info", tmp_path / "a.csv").out
    facts = cli.ok("info", tmp_path / "a.csv", "--json").json
    assert (facts["kind"], facts["format"], facts["first_text"]) == ("data", "csv", "x")


def test_info_counts_no_parameters_of_a_model_that_has_none(cli: Cli, made: Path, tmp_path: Path) -> None:
    data = write_reviews(tmp_path / "a.csv", 24)
    cli.ok("train", data, "--out", tmp_path / "run", "--model", "tfidf-lr", "--quiet")
    assert "tfidf-lr, fitted at once\n" in cli.ok("info", tmp_path / "run").out
