"""`emhrnn paper evidence --report`: from the records that the repository keeps."""

import json
import shutil
from pathlib import Path

import pytest

from tests.behaviour.commands import Cli

RESULTS = Path(__file__).parents[2] / "results"


def lines(text: str, heading: str) -> list[str]:
    """The table under a heading."""
    section = text.partition(f"# {heading}\n")[2].partition("\n#")[0]
    return [line for line in section.splitlines() if line.startswith("|")]


def test_the_kept_report_is_that_of_the_records(cli: Cli, tmp_path: Path) -> None:
    shutil.copytree(RESULTS / "evidence-yelp", tmp_path / "evidence-yelp")  # cross-validated
    (tmp_path / "table2" / "data").mkdir(parents=True)
    (tmp_path / "table2" / "runs").mkdir()
    name = "yelp_recsys2013_10k"
    shutil.copy(RESULTS / "table2" / "data" / f"{name}.json", tmp_path / "table2" / "data")
    for row in ("Phrase-evidence", "HN-ATT"):
        for file in (RESULTS / "table2" / "runs").glob(f"{name}--{row}--*.json"):
            shutil.copy(file, tmp_path / "table2" / "runs")
    cli.ok("paper", "evidence", "--report", "--results", tmp_path)
    made, kept = ((folder / "evidence.md").read_text(encoding="utf-8") for folder in (tmp_path, RESULTS))
    assert len(lines(made, "yelp")) == 9
    assert lines(made, "yelp") == lines(kept, "yelp")
    shown = lines(made, name)
    assert len(shown) == 4
    known = {tuple(line.replace("**", "").split(" | ")[:5]) for line in lines(kept, name)}  # bold among fewer rows, too
    assert {tuple(line.replace("**", "").split(" | ")[:5]) for line in shown} <= known
    assert "emhrnn compare yelp=" in made
    data = json.loads((tmp_path / "evidence.json").read_text(encoding="utf-8"))
    rows = {row["model"]: row for row in data["sets"]["yelp"]["rows"]}
    assert rows["words"]["against"]["holm_p"] >= rows["words"]["against"]["p"]
    accuracies = {name: row["accuracy"] for name, row in rows.items()}
    assert rows["words"]["against"]["difference"] == pytest.approx(accuracies["words"] - accuracies["learned"])
    assert accuracies["words"] < accuracies["learned"]
    assert data["table2"][name]["reference"] == "Phrase evidence"
    kept_sets = json.loads((RESULTS / "evidence.json").read_text(encoding="utf-8"))["sets"]
    assert set(kept_sets) == {folder.name.removeprefix("evidence-") for folder in RESULTS.glob("evidence-*/")}
    assert all(one["command"].startswith("emhrnn compare ") for one in kept_sets.values())


def test_refusals(cli: Cli, tmp_path: Path) -> None:
    assert "--report" in cli.error("paper", "evidence")
    assert "no records" in cli.error("paper", "evidence", "--report", "--results", tmp_path)
