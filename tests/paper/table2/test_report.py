"""What may be compared is said to be so; an encoder in the place of Bert-base, from the command to the report."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from emhrnn.files import sha256
from emhrnn.paper import table2
from emhrnn.paper.comparison.data import DataSet
from emhrnn.paper.comparison.table import TableRow
from emhrnn.paper.table2 import OURS, STANDS_IN, Table2, best_for_budgets, draw_frontier, render_markdown
from emhrnn.paper.table2.sets import DOCUMENTS, Found
from tests.behaviour.commands import Cli
from tests.models.tiny_bert import make_bert
from tests.paper.comparison.test_table import runs, table


def result(found: Found, documents: int, *, quick: bool = False) -> Table2:
    encoder = replace(runs("mini, frozen", 0.6), settings=("model.pretrained=mini", "model.frozen=true"))
    rows = [runs("HN-ATT", 0.66), runs("CMA", 0.67), runs("LSTM", 0.6), encoder, runs("fastText", 0.65)]
    made = table(*rows, reference="HN-ATT")
    parts = {"train": {"documents": documents - 2}, "valid": {"documents": 1}, "test": {"documents": 1}}
    return Table2(replace(made, sets={"d": {**made.sets["d"], "parts": parts}}), [found], quick)


def comparable(found: Found, documents: int, *, quick: bool = False) -> dict[str, str]:
    cells = result(found, documents, quick=quick).cells(found)
    return {cell.row.model: ("yes" if cell.comparable else "no") + f": {cell.why}" for cell in cells}


YELP = Found(DataSet("d", Path("d")), "Tang's Yelp 2013", "Yelp'13", tang=True)
STAND_IN = Found(DataSet("d", Path("d")), "stands in for Yelp'13")


def test_the_same_set_is_comparable_row_by_row() -> None:
    said = comparable(YELP, DOCUMENTS["Yelp'13", "tang"])
    assert said["HN-ATT"].startswith("yes")
    assert said["CMA"] == "no: the printed number is of Tang's smaller set with users, this is Tang's set"
    assert said["LSTM"] == "no: the paper gives none"
    assert said["fastText"] == "no: not a row of the paper"
    assert said["mini, frozen"] == "no: stands in for Bert-base and is not comparable with its numbers"
    assert comparable(YELP, DOCUMENTS["Yelp'13", "tang-ids"])["CMA"].startswith("yes")


def test_parts_of_a_set_stand_ins_and_quick_looks_never_are() -> None:
    assert comparable(YELP, 5000)["HN-ATT"] == "no: 5,000 documents are not the set that the numbers are of"
    assert comparable(STAND_IN, 335_018)["HN-ATT"] == "no: stands in for Yelp'13"
    assert comparable(YELP, 335_018, quick=True)["HN-ATT"].startswith("no: a quick look")


def test_the_report_keeps_the_numbers_apart() -> None:
    told = render_markdown(result(YELP, 335_018))
    assert "| HN-ATT | 66.0 | 68.9 | 69.4 | 73.8 | 60.7 |" in told
    assert "| HN-ATT | 68.2 | 70.5 | 71.0 | 75.8 | 63.6 |" in told
    assert "| 66.0 | 68.2 | yes: the same set; splits and tuning may differ |" in told
    alone = render_markdown(result(STAND_IN, 1000)).partition("## Ours")[2]
    assert "not comparable with any number above" in alone
    assert "68.2" not in alone
    assert f"mini, frozen (model.pretrained=mini, model.frozen=true) {STANDS_IN}.\n" in alone
    rows = result(YELP, 335_018).to_dict()["rows"]
    assert (rows[0]["paper"], rows[0]["published"], rows[0]["comparable"]) == (66.0, 68.2, True)


SET, ROW = "yelp_recsys2013_10k", "mini, frozen"


def yelp(folder: Path) -> Path:
    texts = ["The room was nice and clean.", "The rooms was old!!"]
    with gzip.open(folder / f"{SET}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": texts[i % 2], "label": i % 2}) + "\n" for i in range(60))
    return folder


@pytest.mark.usefixtures("in_this_process")
def test_a_frozen_encoder_is_run_once_and_its_record_names_no_place(tmp_path: Path, cli: Cli) -> None:
    pytest.importorskip("transformers", reason="needs the extra `transformers`")
    (tmp_path / "here" / "mini").mkdir(parents=True)
    folder = make_bert(tmp_path / "here" / "mini")
    out = tmp_path / "out"
    given = [
        "paper", "table2", "--data", yelp(tmp_path), "--out", out, "--work", out, "--rows", ROW,
        "--seeds", "3", "--processes", "1", "--quiet", "--json",
    ]  # fmt: skip
    table = cli.ok(*given, "--pretrained", folder).json
    (row,) = table["rows"]  # type: ignore[misc]
    assert (row["model"], row["seeds"], row["comparable"], table["missing"]) == (ROW, 1, False, [])
    assert row["accuracy"] == 1.0
    assert row["settings"] == ["model.pretrained=mini", "model.frozen=true", "model.head=32", "model.tail=96"]
    assert "Nothing is drawn by chance in mini, frozen" in str(table["method"])
    (record,) = (out / "runs").glob("*.json")
    told = json.loads(record.read_text())["arguments"]
    assert told["settings"]["model"]["pretrained"] == "mini"
    assert told["pretrained_sha256"] == sha256(folder / "model.safetensors")
    for file in (record, *out.glob("table*")):
        assert str(tmp_path) not in file.read_text(), file
    assert "mini, frozen (model.pretrained=mini," in (out / "table2.md").read_text()

    moved = shutil.move(tmp_path / "here", tmp_path / "there") / "mini"
    before = record.read_text()
    assert cli.ok(*given, "--pretrained", moved, "--report").json["missing"] == []
    cli.ok(*given, "--pretrained", moved)
    assert record.read_text() == before  # it was not done again
    (moved / "model.safetensors").write_bytes(b"other weights")
    assert "was done with pretrained_sha256 = " in cli.error(*given, "--pretrained", moved)
    assert "is not a row of the table; give some of" in cli.error(*given, "--pretrained", moved, "--rows", "Bert-base")
    assert "is not a row of the table; give some of" in cli.error(*given)


FRONTIER_ROW = TableRow(
    data="d", model="m", settings=(), accuracy=0.5, low=0.4, high=0.6, sd=None, seeds=1, macro_f1=0.5,
    valid_accuracy=0.5, parameters=1, best_epochs=(0,), accuracies=(0.5,), commits=(), training_seconds=60.0,
    words_per_second=1.0, documents_per_second=1.0, best=False, against=None,
)  # fmt: skip


def frontier_row(model: str, seconds: float, accuracy: float) -> TableRow:
    return replace(FRONTIER_ROW, model=model, training_seconds=float(seconds), accuracy=accuracy)


def test_the_frontier_leaves_out_what_a_cheaper_row_reaches() -> None:
    rows = [
        frontier_row("slow", 600, 0.9),
        frontier_row("cheap", 10, 0.7),
        frontier_row("worse", 60, 0.6),
        frontier_row("level", 90, 0.7),
    ]
    assert [one.model for one in best_for_budgets(rows)] == ["cheap", "slow"]


def test_a_table_says_what_is_best_for_a_budget_and_which_code_trained_its_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table2, "training_code", lambda commit: commit[0])
    made = table(runs("HN-ATT", 0.66), runs("LSTM", 0.6), reference="HN-ATT")
    slow, fast = (
        replace(row, training_seconds=seconds, commits=commits)
        for row, seconds, commits in zip(made.rows, (90.0, 30.0), (("a1", "a2"), ("a1", "b1")), strict=True)
    )
    found = replace(STAND_IN, data=DataSet(slow.data, Path("d")))
    told = render_markdown(Table2(replace(made, rows=(slow, fast)), [found]))
    assert f"1 min: LSTM ({100 * fast.accuracy:.1f} %); 10 min: HN-ATT ({100 * slow.accuracy:.1f} %)" in told
    assert "training code: 2 versions; rows may differ by more than their models: HN-ATT; LSTM" in told
    assert "versions" not in render_markdown(Table2(replace(made, rows=(slow,)), [found]))


def test_the_figure_names_the_rows_of_the_frontier(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [frontier_row(OURS, 60, 0.8), frontier_row("cheap", 10, 0.7), frontier_row("dear", 600, 0.6)]
    draw_frontier({"a": rows, "b": rows}, tmp_path / "f.svg")
    svg = (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert svg.count(f"<!-- {OURS} -->") == 2
    assert "<!-- cheap -->" in svg
    assert "<!-- dear -->" not in svg
    draw_frontier({"a": rows, "b": rows}, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_bytes() == (tmp_path / "f.svg").read_bytes()
