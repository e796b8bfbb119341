"""What may be compared is said to be so, and nothing else."""

from dataclasses import replace
from pathlib import Path

from emhrnn.paper.comparison.data import DataSet
from emhrnn.paper.table2.report import STANDS_IN, Table2, render_markdown
from emhrnn.paper.table2.sets import DOCUMENTS, Found
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
    assert said["LSTM"] == "no: the paper has no number"
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
