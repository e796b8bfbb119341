"""`emhrnn paper check` finds figures without a record, and the repository has none."""

import shutil
from pathlib import Path

import pytest

from emhrnn.errors import DataError
from emhrnn.paper.check import _table_problems, check_records, page_problems

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "a.md").write_text("| evidence | 58.5 | agreement 0.756 |\n")
    return tmp_path


def problems_of(checkout: Path, text: str) -> list[str]:
    page = checkout / "page.md"
    page.write_text(text)
    return [str(problem) for problem in page_problems(page, checkout)]


@pytest.mark.parametrize(
    "text",
    [
        "It has 58.5 % (`results/a.md`).\n",
        "[Records](results/a.md) say:\n\n| model | 58.5 % |\n",
        "See `results/a.md`.\n\nPeople agree in 75.6 % of the cases.\n",
        "<!-- no record: a bound -->\nAt most 84.5 %.\n",
        "```\n5 91.3 %\n```\n",
        "Within 0.5 seconds, 95 % of the time.\n",
    ],
)
def test_figures_with_a_record_pass(checkout: Path, text: str) -> None:
    assert problems_of(checkout, text) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# A\n\nIt has 58.6 % (`results/a.md`).\n", "page.md:3: 58.6 stands in none of results/a.md"),
        ("It has 58.5 %.\n", "58.5 stands in no record"),
        ("It is 2.9 points better (`results/gone.md`).\n", "2.9 stands in no record"),
        ("See `results/a.md`.\n\n## Another matter\n\nIt has 58.5 %.\n", "58.5 stands in no record"),
    ],
)
def test_figures_without_a_record_are_found(checkout: Path, text: str, told: str) -> None:
    (problem,) = problems_of(checkout, text)
    assert told in problem


def test_every_figure_of_this_repository_has_a_record() -> None:
    assert check_records(ROOT) == []


def test_a_table_that_its_runs_do_not_give_is_found(tmp_path: Path) -> None:
    shutil.copy(ROOT / "results" / "table2.json", tmp_path)
    shutil.copytree(ROOT / "results" / "table2", tmp_path / "table2")
    assert not list(_table_problems(tmp_path))
    run = next((tmp_path / "table2" / "runs").glob("yelp*Phrase-evidence--0.json"))
    run.write_text(run.read_text().replace('"accuracy": 0.', '"accuracy": 0.1', 1))
    (problem,) = _table_problems(tmp_path)
    assert problem.file == "results/table2.json"
    assert "Phrase evidence" in problem.told


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"table2\.json"):
        check_records(tmp_path)
