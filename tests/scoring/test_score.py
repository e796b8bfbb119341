"""Each row in gives one row out, whatever the row is."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import emhrnn
from emhrnn.corpus import Columns, prepare
from emhrnn.errors import DataError
from emhrnn.scoring import ScoringResult, score
from emhrnn.scoring.chunks import Data
from tests.behaviour.commands import BAD, GOOD, Cli


def scored(run: Path, *data: Path, out: Path, **options: Any) -> ScoringResult:
    return score(run, Data(paths=data), out, progress=False, **options)


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("small_chunks")
def test_the_rows_are_those_of_the_model(run: Path, reviews: Path, tmp_path: Path) -> None:
    result = scored(run, reviews, out=tmp_path / "p.jsonl")
    rows, texts = read(tmp_path / "p.jsonl"), [row["text"] for row in read(reviews)]
    model = emhrnn.load(run)
    assert (result.rows, result.unscored, result.errors) == (43, 0, None)
    assert [row["id"] for row in rows] == [f"r{i}" for i in range(43)]
    assert [row["label"] for row in rows] == model.predict(texts)
    shares = [[row[f"p_{name}"] for name in model.classes] for row in rows]
    np.testing.assert_allclose(shares, model.predict_proba(texts), atol=1e-5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.jsonl", "reviews.jsonl"]


@pytest.mark.usefixtures("small_chunks")
def test_every_format_says_the_same(run: Path, reviews: Path, tmp_path: Path) -> None:
    for name in ("p.jsonl", "p.csv", "p.parquet"):
        scored(run, reviews, out=tmp_path / name)
    rows = read(tmp_path / "p.jsonl")
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [{name: str(value) for name, value in row.items()} for row in rows] == table
    stored = pa.parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert [row["label"] for row in stored] == [row["label"] for row in rows]
    assert [row["p_good"] for row in stored] == pytest.approx([row["p_good"] for row in rows])


@pytest.mark.usefixtures("small_chunks")
def test_the_number_of_workers_changes_no_byte(run: Path, reviews: Path, tmp_path: Path) -> None:
    scored(run, reviews, out=tmp_path / "one.csv", workers=1)
    scored(run, reviews, out=tmp_path / "two.csv", workers=2)
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


def test_globs_folders_and_several_files(run: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    (parts / "more").mkdir(parents=True)
    (parts / "a.csv").write_text(f"text\n{GOOD!r}\n")
    (parts / "_SUCCESS").write_text("")
    with gzip.open(parts / "b.jsonl.gz", "wt") as file:
        file.write(json.dumps({"text": BAD}) + "\n")
    pa.parquet.write_table(pa.table({"text": [GOOD, BAD]}), parts / "more" / "c.parquet")
    for number, data in enumerate([[parts], [parts / "*.csv", parts / "b*", parts / "more" / "c.parquet"]]):
        out = tmp_path / f"{number}.jsonl"
        assert scored(run, *data, out=out).rows == 4
        assert [row["id"] for row in read(out)] == ["0", "1", "2", "3"]
    with pytest.raises(DataError, match=r"no file matches .*; check the pattern"):
        scored(run, parts / "*.tsv", out=tmp_path / "p.csv")


BROKEN = [
    (b'{"id": "a", "text": "good soup"}', None),
    (b'{"id": "b", "text": ""}', "no words"),
    (b'{"id": "c", "text": null}', "no text"),
    (b'{"id": "d"}', "no text"),
    (b'{"id": "e", "text": 5}', "the text is of type int, a string is needed"),
    (b'{"id": "f", "text": "good', "is not valid JSON"),
    (b"[1, 2]", "is a JSON list"),
    (b'{"id": "h", "text": "caf\xe9 good \xc3\xa9"}', "broken UTF-8"),
    (b'{"id": "i", "text": " \\u0000 "}', "no words"),
    (b'{"id": "j", "text": "bad soup"}', None),
]


def test_rows_that_cannot_be_scored(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.jsonl"
    data.write_bytes(b"\n".join(line for line, _ in BROKEN) + b"\n")
    result = scored(run, data, out=tmp_path / "p.jsonl")
    rows, errors = read(tmp_path / "p.jsonl"), read(tmp_path / "p.jsonl.errors.jsonl")
    assert (result.rows, result.unscored, result.errors) == (10, 7, tmp_path / "p.jsonl.errors.jsonl")
    assert [row["id"] for row in rows] == ["a", "b", "c", "d", "e", "5", "6", "h", "i", "j"]
    assert [number for number, row in enumerate(rows) if row["label"] is not None] == [0, 7, 9]
    assert rows[1] == {"id": "b", "label": None, "p_bad": None, "p_good": None}
    told = [(number, reason) for number, (_, reason) in enumerate(BROKEN) if reason]
    assert len(errors) == len(told)
    for error, (number, reason) in zip(errors, told, strict=True):
        assert (error["row"], error["id"]) == (number, rows[number]["id"])
        assert reason in error["reason"]
        assert error["scored"] == (number == 7)
        assert error["where"] == f"{data}, row {number + 1}"


def test_broken_rows_of_csv(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.csv"
    data.write_text('id,text\n1,good\n2,"bad"x\n3,good,more\n4,\n5,bad\n')
    result = scored(run, data, out=tmp_path / "p.csv")
    assert (result.rows, result.unscored) == (5, 3)
    reasons = [error["reason"] for error in read(tmp_path / "p.csv.errors.jsonl")]
    assert [reason.split(" (")[0] for reason in reasons] == [
        "the row from line 3 on has unbalanced quotes", "has 3 fields, the header has 2", "no words",
    ]  # fmt: skip
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["id", "1", "1", "2", "4", "5"]  # broken: the row number
    assert lines[4] == "4,,,"


def test_an_errors_file_of_another_time_goes(run: Path, reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv.errors.jsonl").write_text("old")
    assert scored(run, reviews, out=tmp_path / "p.csv").errors is None
    assert not (tmp_path / "p.csv.errors.jsonl").exists()


def test_explanations(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "a.jsonl"
    data.write_text(json.dumps({"text": GOOD}) + "\n" + json.dumps({"text": "!"}) + "\n" + '{"text": ""}\n')
    scored(run, data, out=tmp_path / "p.jsonl", explain=True)
    rows = read(tmp_path / "p.jsonl")
    explanation = emhrnn.load(run).explain(GOOD, exact=False)
    sides = {"for": explanation.supporting(3), "against": explanation.opposing(3)}
    assert sum(map(len, sides.values())) > 1
    for side, nodes in sides.items():
        for told, node in zip(rows[0][side], nodes, strict=True):
            assert (told["text"], told["start"], told["end"]) == (node.text, node.start, node.end)
            assert told["effect"] == pytest.approx(node.effect, abs=1e-5)
    assert rows[2]["for"] is rows[2]["against"] is None
    scored(run, data, out=tmp_path / "plain.jsonl")
    plain = read(tmp_path / "plain.jsonl")
    assert [row["label"] for row in plain] == [row["label"] for row in rows]
    assert plain[0]["p_good"] == pytest.approx(rows[0]["p_good"], abs=1e-6)
    scored(run, data, out=tmp_path / "p.csv", explain=True)
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    numbered = [f"{side}_{k}{what}" for side in sides for k in (1, 2, 3) for what in ("", "_effect")]
    assert list(table[0])[-12:] == numbered
    for side, nodes in sides.items():
        assert [table[0][f"{side}_{k}"] for k in (1, 2, 3)] == [*(n.text for n in nodes), *[""] * (3 - len(nodes))]
        for k, node in enumerate(nodes, start=1):
            assert float(table[0][f"{side}_{k}_effect"]) == pytest.approx(node.effect, abs=1e-5)
    assert table[2]["for_1"] == ""


def test_a_prepared_corpus_is_refused(run: Path, reviews: Path, tmp_path: Path) -> None:
    prepare(reviews, tmp_path / "corpus", columns=Columns(labelled=False), progress=False)
    with pytest.raises(DataError, match=r"prepared corpus.*give the file"):
        scored(run, tmp_path / "corpus", out=tmp_path / "c.csv")


def test_the_command(cli: Cli, run: Path, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "good"}\n{"text": 3}\n')
    told = cli.ok("predict", run, tmp_path / "a.jsonl", "--out", tmp_path / "p.csv").out
    assert "2 rows to" in told
    errors = tmp_path / "p.csv.errors.jsonl"
    assert f"1 row could not be scored; {errors}" in told
    facts = cli.ok("predict", run, tmp_path / "a.jsonl", "--out", tmp_path / "p.csv", "--json").json
    assert (facts["rows"], facts["unscored"], facts["before"]) == (2, 1, 0)


def test_what_is_written_is_never_read(run: Path, reviews: Path, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(reviews.read_bytes() + b'{"text": ""}\n')
    for data in (folder, folder / "*", folder / "**" / "*.jsonl"):
        for _ in range(2):
            out = folder / "labels.jsonl"
            result = scored(run, data, out=out, explain=True)
            assert (result.rows, result.unscored) == (44, 1)
            assert result.errors == folder / "labels.jsonl.errors.jsonl"


def test_an_output_through_a_link_is_not_read(run: Path, reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for _ in range(2):
        assert scored(run, tmp_path / "*.jsonl", out=tmp_path / "link" / "p.jsonl").rows == 43


def test_nothing_is_left_to_read(run: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(f"text\n{GOOD!r}\n")
    (tmp_path / "p.csv.unfinished").mkdir()
    for data in (tmp_path, tmp_path / "*.csv"):
        with pytest.raises(DataError, match=r"has no files but those that scoring writes; give other data, or another"):
            scored(run, data, out=tmp_path / "p.csv")


def test_what_is_written_cannot_be_named_as_data(run: Path, reviews: Path, tmp_path: Path) -> None:
    errors, unfinished = tmp_path / "p.csv.errors.jsonl", tmp_path / "p.csv.unfinished"
    errors.write_text(json.dumps({"text": GOOD}) + "\n")
    unfinished.mkdir()
    for named in (errors, unfinished):
        with pytest.raises(DataError, match=r"is written beside .*p\.csv, so it cannot be data, too; give another"):
            scored(run, reviews, named, out=tmp_path / "p.csv")
    assert errors.exists()


def test_an_output_among_the_folders_of_classes(run: Path, tmp_path: Path) -> None:
    for name, text in (("good", GOOD), ("bad", BAD)):
        (tmp_path / "d" / name).mkdir(parents=True)
        (tmp_path / "d" / name / "1.txt").write_text(text)
    with pytest.raises(DataError, match=r"has a folder per class, and --out would lie among them; give a file else"):
        scored(run, tmp_path / "d", out=tmp_path / "d" / "p.csv")
    for _ in range(2):
        assert scored(run, tmp_path / "d", out=tmp_path / "d" / "good" / "p.csv").rows == 2
