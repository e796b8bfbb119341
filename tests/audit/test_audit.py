"""Planted errors, near-duplicates, outliers and classes of chance are found, shown safely, and corrected."""

import csv
import json
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.audit import LEAST, near_duplicates
from emhrnn.corpus import Corpus
from emhrnn.training.validation import folds_of
from tests.behaviour.commands import Cli, write_rows

EVIL = "<script>alert(1)</script>"
KINDS = {
    "good": "The soup was good and the waiter kind. We liked table {0} and plate {1}.",
    "bad": "The soup was bad and the waiter rude. We hated table {0} and plate {1}.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 reviews: rows 10 and 31 have the wrong label; the classes x and y are the same; 100 and 101 nearly equal."""
    folder = tmp_path_factory.mktemp("audit")
    rows = [(KINDS[name].format(i, i * 7 % 50), name) for i in range(40) for name in KINDS]
    rows[10], rows[31] = (rows[10][0] + EVIL, "bad"), (rows[31][0], "good")
    rows += [(f"Neither here nor there, number n{i} of m{i} letters.", "xy"[(i * i // 3) % 2]) for i in range(40)]
    long = " ".join(f"word{i}" for i in range(60))
    rows += [(f"We liked it: {long}", "good"), (f"We liked it: {long} again", "bad")]
    rows += [("zwölf boxkämpfer jagen viktor quer über den sylter deich", "good"), ("Liked", "good")]
    write_rows(folder / "a.csv", rows)
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, object]:
    from emhrnn.audit import audit
    from emhrnn.audit.report import label_studio_config, report_page, to_csv, to_label_studio, to_prodigy
    from emhrnn.training.data import Named

    report = audit(Named(path=folder / "a.csv"), folds=3, limit=20, progress=False)
    (folder / "s.csv").write_text(to_csv(report))
    (folder / "s.json").write_text(to_label_studio(report))
    (folder / "s.jsonl").write_text(to_prodigy(report))
    (folder / "s.xml").write_text(label_studio_config(report))
    (folder / "s.html").write_text(report_page(report))
    return report.to_dict()


def test_what_is_found(found: dict[str, list[dict[str, object]]]) -> None:
    suspects = {s["row"]: s for s in found["suspects"]}
    assert {10, 31} <= suspects.keys()
    for row, label in ((10, "good"), (31, "bad")):
        assert suspects[row]["suggested"] == label
        assert suspects[row]["likely"]
        assert suspects[row]["reasons"]
    assert [(pair["one"], pair["other"]) for pair in found["alike"]] == [("x", "y")]
    assert (120, 121) in [tuple(group) for group in found["duplicates"]]
    assert (120, 121) in [tuple(group) for group in found["conflicts"]]
    why = {outlier["row"]: outlier["why"] for outlier in found["outliers"]}
    assert "in no other document" in why[122]
    assert why[123].startswith("1 word,")


def test_the_page_is_escaped(folder: Path, found: dict[str, object]) -> None:
    page = (folder / "s.html").read_text()
    assert EVIL not in page
    tags, shown = list[str](), list[str]()
    parser = HTMLParser()
    parser.handle_data = shown.append  # type: ignore[method-assign]
    parser.handle_starttag = lambda tag, attributes: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(page)
    assert EVIL in "".join(shown)
    assert "script" not in tags
    assert "table" in tags


def test_regions_are_those_of_the_text(folder: Path, found: dict[str, object]) -> None:
    for task in json.loads((folder / "s.json").read_text()):
        regions = [part["value"] for part in task["predictions"][0]["result"] if part["type"] == "labels"]
        assert all(task["data"]["text"][one["start"] : one["end"]] == one["text"] for one in regions)
    lines = [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]
    assert any(line["spans"] for line in lines)
    assert '<Choice value="good"/>' in (folder / "s.xml").read_text()


def edited(folder: Path, kind: str) -> Path:
    """Somebody says that row 10 is good, and looks at nothing else."""
    path = folder / f"edited.{kind}"
    if kind == "csv":
        with (folder / "s.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows({**row, "new_label": "good" if row["row"] == "10" else ""} for row in rows)
    elif kind == "json":
        tasks = json.loads((folder / "s.json").read_text())
        choice = [{"from_name": "label", "type": "choices", "value": {"choices": ["good"]}}]
        path.write_text(
            json.dumps([{**t, "annotations": [{"result": choice}] if t["data"]["row"] == 10 else []} for t in tasks])
        )
    else:
        lines = [json.loads(line) for line in (folder / "s.jsonl").read_text().splitlines()]
        done = [{**t, "answer": "accept" if t["meta"]["row"] == 10 else "ignore"} for t in lines]
        path.write_text("".join(json.dumps(t) + "\n" for t in done))
    return path


def test_suspects_edited_in_a_spreadsheet(tmp_path: Path) -> None:
    """A German Excel saves semicolons and cp1252."""
    from emhrnn.audit.report import corrections_in

    path = tmp_path / "s.csv"
    path.write_bytes(
        'row;id;label;new_label;text\r\n4;4;gut;schön;"Ja;\r\nnein"\r\n5;5;gut;;Größe\r\n'.encode("cp1252")
    )
    assert corrections_in(path) == {4: ("schön",)}
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra: xlsx")
    book = openpyxl.Workbook()
    for row in [("row", "text", "new_label"), (4, "Ja", "a|b"), (7, "Nein", 2), (8, "Oh", None)]:
        book.active.append(row)
    book.save(tmp_path / "s.xlsx")
    assert corrections_in(tmp_path / "s.xlsx") == {4: ("a", "b"), 7: ("2",)}


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("kind", ["csv", "json", "jsonl"])
def test_corrections_come_back(cli: Cli, folder: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "clean.csv"
    call = ("audit", folder / "a.csv", "--corrections", edited(folder, kind), "--out")
    assert cli.ok(*call, out, "--json").json == {"out": str(out), "rows": 124, "changed": 1}
    with (folder / "a.csv").open(newline="") as file, out.open(newline="") as other:
        before, after = list(csv.reader(file)), list(csv.reader(other))
    assert [i for i, (one, two) in enumerate(zip(before, after, strict=True)) if one != two] == [11]
    assert after[11][1] == "good"
    assert "another file" in cli.error(*call, folder / "a.csv")


def test_what_cannot_be_used(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    for wrong in ("a.txt", "a.csv"):
        call = ("audit", folder / "a.csv", "--corrections", tmp_path / wrong)
        assert "correct" in cli.error(*call, "--out", tmp_path / "o.csv")
    assert "--out" in cli.error(*call)
    assert ".csv" in cli.error("audit", folder / "a.csv", "--out", tmp_path / "o.json")
    few = write_rows(tmp_path / "few.csv", [("good soup", "a"), ("bad soup", "b")])
    assert "needs 20 or more" in cli.error("audit", few)


@given(st.integers(0, 1000))
def test_near_duplicates_are_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts = [rng.choice(40, size=30).tolist() for _ in range(6)]
    for source in (0, 1, 1):
        copy = list(texts[source])
        copy[int(rng.integers(30))] = 99
        texts.append(copy)
    written = [" ".join(f"w{word}" for word in text) for text in texts]
    groups = near_duplicates(Corpus.from_texts(written))
    shingles = [set(zip(t, t[1:], t[2:], strict=False)) for t in texts]
    pairs = {
        (i, j)
        for i, j in combinations(range(len(texts)), 2)
        if len(shingles[i] & shingles[j]) / len(shingles[i] | shingles[j]) >= LEAST
    }
    together = {pair for group in groups for pair in combinations(group, 2)}
    assert pairs <= together
    assert {i for pair in pairs for i in pair} == {i for group in groups for i in group}


def test_equal_texts_share_a_fold() -> None:
    corpus = Corpus.from_texts([f"text {i % 10}" for i in range(40)], ["ab"[i % 2] for i in range(40)])
    fold = folds_of(corpus, 4, np.random.default_rng(0))
    assert len(set(fold.tolist())) == 4
    assert all(fold[i] == fold[i % 10] for i in range(40))
