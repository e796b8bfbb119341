"""Options of scoring that decide: abstain, thresholds, top classes, sets of labels, kept columns, mistakes."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import emhrnn
from emhrnn.errors import ConfigError, DataError
from emhrnn.scoring import ScoringResult, score
from emhrnn.scoring.chunks import Data
from tests.behaviour.commands import BAD, GOOD, Cli, rows, tiny, write_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three classes that is calibrated on 60 documents, some of which it gets wrong."""
    folder = tmp_path_factory.mktemp("decide")
    kinds = {"good": GOOD, "bad": BAD, "fair": "The soup was fair, and so was the waiter. Nothing to add."}
    labelled = [(f"{text} Visit {i}.", name) for i in range(80) for name, text in kinds.items()]
    noisy = [(text, "bad" if i % 9 == 0 else name) for i, (text, name) in enumerate(labelled)]
    emhrnn.train(
        write_rows(folder / "a.csv", noisy), folder / "run", progress=False,
        settings={"data.validation": 0.25, "training.epochs": 2},
    )  # fmt: skip
    write_rows(folder / "test.csv", noisy[:30])
    return folder


def scored(folder: Path, out: Path, **options: Any) -> ScoringResult:
    return score(folder / "run", Data(paths=(folder / "test.csv",)), out, progress=False, **options)


def read(out: Path) -> list[dict[str, str]]:
    with out.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_abstaining(folder: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.csv"
    scored(folder, plain)
    highest = sorted(max(float(row[f"p_{name}"]) for name in ("good", "bad", "fair")) for row in read(plain))
    limit = highest[12]  # of documents that have it, none is below
    result = scored(folder, tmp_path / "p.csv", min_confidence=limit)
    table = read(tmp_path / "p.csv")
    assert result.abstained == sum(row["label"] == "" for row in table) == highest.index(limit) > 0
    for row in table:
        assert float(row["confidence"]) == max(float(row[f"p_{name}"]) for name in ("good", "bad", "fair"))
        assert row["label"] == (row["guess"] if float(row["confidence"]) >= limit else "")
    texts = [row["text"] for row in read(folder / "test.csv")]
    found = emhrnn.load(folder / "run").predict(texts, min_confidence=limit)
    assert [label or "" for label in found] == [row["label"] for row in table]


def test_the_top_classes(folder: Path, tmp_path: Path) -> None:
    scored(folder, tmp_path / "p.csv", top=2)
    scored(folder, tmp_path / "all.csv")
    for row, every in zip(read(tmp_path / "p.csv"), read(tmp_path / "all.csv"), strict=True):
        assert list(row) == ["id", "label", "label_1", "p_1", "label_2", "p_2"]
        assert row["label"] == row["label_1"] != row["label_2"]
        assert row["p_1"] == every[f"p_{row['label_1']}"]
        assert float(row["p_1"]) >= float(row["p_2"])


def test_sets_of_labels(folder: Path, tmp_path: Path) -> None:
    result = scored(folder, tmp_path / "p.csv", coverage=0.8)
    sets = [set(row["set"].split("|")) for row in read(tmp_path / "p.csv")]
    assert result.labels == sum(map(len, sets))
    texts, gold = zip(*((row["text"], row["label"]) for row in read(folder / "test.csv")), strict=True)
    assert [set(some) for some in emhrnn.load(folder / "run").predict_sets(list(texts), coverage=0.8)] == sets
    assert sum(label in some for label, some in zip(gold, sets, strict=True)) >= 24
    with pytest.raises(ConfigError, match="takes 999 labelled documents"):
        scored(folder, tmp_path / "p.csv", coverage=0.999)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_columns_are_kept(folder: Path, tmp_path: Path, suffix: str) -> None:
    data = tmp_path / "a.jsonl"
    some = [{"label": 3, "text": GOOD, "tags": ["a", "b"], "id": "x"}, {"label": None, "text": BAD, "id": "y"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in some))
    out = tmp_path / f"p.{suffix}"
    score(folder / "run", Data(paths=(data,)), out, progress=False, keep_columns=True)
    table: list[dict[str, Any]]
    if suffix == "parquet":
        table = pyarrow.parquet.read_table(out).to_pylist()
    else:
        table = read(out) if suffix == "csv" else [json.loads(line) for line in out.read_text().splitlines()]
    assert list(table[0])[:5] == ["label", "text", "tags", "id", "predicted_label"]
    assert [row["id"] for row in table] == ["x", "y"]
    assert [row["predicted_label"] for row in table] == emhrnn.load(folder / "run").predict([GOOD, BAD])
    assert table[0]["label"] == (3 if suffix == "jsonl" else "3")
    assert table[0]["tags"] == (["a", "b"] if suffix == "jsonl" else '["a", "b"]')
    assert not table[1]["tags"]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_mistakes(cli: Cli, folder: Path, tmp_path: Path, suffix: str) -> None:
    run, wrong = folder / "run", tmp_path / f"wrong.{suffix}"
    told = cli.ok(
        "predict", run, folder / "test.csv", "--out", tmp_path / "p.csv", "--mistakes", wrong, "--workers", "1"
    ).out
    gold, found = read(folder / "test.csv"), read(tmp_path / "p.csv")
    expected = [(g, f) for g, f in zip(gold, found, strict=True) if g["label"] != f["label"]]
    table = read(wrong) if suffix == "csv" else [json.loads(line) for line in wrong.read_text().splitlines()]
    assert table
    assert [(row["text"], row["gold"], row["predicted"]) for row in table] == [
        (g["text"], g["label"], f["label"]) for g, f in expected
    ]
    assert f"of 30 labelled rows right; {len(table)} mistake" in told
    one = table[0]
    assert float(one["probability"]) == float(expected[0][1][f"p_{one['predicted']}"])
    assert float(one["gold_probability"]) == float(expected[0][1][f"p_{one['gold']}"])
    best = emhrnn.load(run).explain(one["text"]).supporting(1)[0].text
    assert (one["for_1"] if suffix == "csv" else one["for"][0]["text"]) == best


def test_mistakes_of_a_model_that_cannot_explain(cli: Cli, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a.csv", rows(24))
    cli.ok("train", data, "--out", tmp_path / "run", "--quiet", *tiny("tfidf-lr"))
    other = write_rows(tmp_path / "b.csv", [(text, "never seen") for text, _ in rows(3)])
    facts = cli.ok(
        "predict", tmp_path / "run", other, "--out", tmp_path / "p.csv", "--mistakes", tmp_path / "w.csv", "--json",
        "--quiet", "--workers", "1",
    ).json  # fmt: skip
    assert (facts["judged"], facts["wrong"]) == (3, 3)
    assert [row["gold_probability"] for row in read(tmp_path / "w.csv")] == [""] * 3
    assert "for_1" not in read(tmp_path / "w.csv")[0]


def test_what_cannot_be_asked(cli: Cli, folder: Path, tmp_path: Path) -> None:
    call = ("predict", folder / "run", folder / "test.csv", "--out", tmp_path / "p.csv", "--quiet", "--workers", "1")
    assert "NUMBER" in cli.error(*call, "--threshold", "x")
    assert "min-confidence" in cli.error(*call, "--threshold", "good=0.5")
    assert "--mistakes" in cli.error(*call, "--label-column", "label")
    assert "two files" in cli.error(*call, "--mistakes", tmp_path / "p.csv")
    assert ".jsonl" in cli.error(*call, "--mistakes", tmp_path / "w.parquet")
    assert not (tmp_path / "p.csv").exists()
    (tmp_path / "texts" / "good").mkdir(parents=True)
    (tmp_path / "texts" / "good" / "1.txt").write_text(GOOD)
    with pytest.raises(DataError, match="is not a table"):
        score(folder / "run", Data(paths=(tmp_path / "texts",)), tmp_path / "p.csv", keep_columns=True, progress=False)
