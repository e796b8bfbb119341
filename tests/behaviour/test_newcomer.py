"""What people do on the first and second day, with the files that they have. 300 rows and 150 classes with the defaults
are in test_few_documents.py."""

import csv
import json
import random
from pathlib import Path

import pytest

import emhrnn
from emhrnn.corpus.reviews import everyday_reviews
from tests.behaviour.commands import Cli

GOOD = "Schöne Grüße aus München, das Zimmer {} war groß und gemütlich."
BAD = "Größe passt nicht, der Käse Nummer {} war leider übel."
ROWS = [((GOOD, BAD)[i % 2].format(i), ("Grüße", "Größe")[i % 2]) for i in range(60)]
QUICK = ("--model", "tfidf-lr", "--quiet")


def spreadsheet(kind: str, folder: Path) -> Path:
    """The same rows as each of some programs saves them."""
    if kind == "xlsx":
        openpyxl = pytest.importorskip("openpyxl", reason="needs the extra: xlsx")
        book = openpyxl.Workbook()
        for row in [("text", "label"), *ROWS]:
            book.active.append(row)
        book.save(folder / "a.xlsx")
        return folder / "a.xlsx"
    if kind == "json":
        (folder / "a.json").write_text(json.dumps([{"text": text, "label": label} for text, label in ROWS], indent=1))
        return folder / "a.json"
    lines = [f'"{text[:20]}\r\n{text[20:]}";{label}' for text, label in ROWS]
    above = {"sep": ["sep=;"], "title": ['Das "Goldene" Haus;', ""]}.get(kind, [])
    content = "\r\n".join([*above, "text;label", *lines, ""])
    (folder / "a.csv").write_bytes(content.encode("cp1252" if above else kind))
    return folder / "a.csv"


@pytest.mark.parametrize("kind", ["cp1252", "utf-16", "utf-8-sig", "sep", "title", "xlsx", "json"])
def test_spreadsheets(cli: Cli, tmp_path: Path, kind: str) -> None:
    data = spreadsheet(kind, tmp_path)
    facts = cli.ok("info", data, "--json").json
    assert facts["classes"] == {"Größe": 30, "Grüße": 30}
    assert (facts["duplicates"], facts["problems"], facts["trouble"]) == (0, [], None)
    cli.ok("train", data, "--out", tmp_path / "run", *QUICK)
    assert cli.ok("evaluate", tmp_path / "run", data, "--json").json["accuracy"] == 1
    assert emhrnn.load(tmp_path / "run").predict([BAD.format("x")]) == ["Größe"]
    cli.ok("predict", tmp_path / "run", data, "--out", tmp_path / "p.csv", "--quiet", "--workers", "1")
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        assert [row["label"] for row in csv.DictReader(file)] == [label for _, label in ROWS]


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


def test_columns_that_were_named_in_training_are_used_again(cli: Cli, tmp_path: Path) -> None:
    data, run = tmp_path / "a.csv", tmp_path / "run"
    with data.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("Meinung", "Note"), *ROWS])
    names = ("--text-column", "Meinung", "--label-column", "Note")
    cli.ok("train", data, "--out", run, *names, *QUICK)
    assert cli.ok("evaluate", run, data, "--json").json["documents"] == len(ROWS)
    out = ("--out", tmp_path / "p.csv", "--mistakes", tmp_path / "m.csv", "--workers", "1", "--quiet")
    cli.ok("predict", run, data, *out)
    cli.ok("drift", run, data)
    usual = write(tmp_path / "b.csv", ROWS)
    assert cli.ok("evaluate", run, usual, "--json").json["documents"] == len(ROWS)


def test_training_says_why_it_ended_and_what_to_do_next(cli: Cli, tmp_path: Path) -> None:
    noise = [(f"Visit number{i}.", "ab"[i * 7919 % 13 % 2]) for i in range(200)]
    few = ("--set", "training.epochs=9", "--set", "training.patience=1", "--set", "training.threads=1", "--quiet")
    told = cli.ok("train", write(tmp_path / "a.csv", noise), "--out", tmp_path / "few", *few).out
    assert "on 200 documents, by cross-validation in 5 folds" in told
    few = (*few, "--set", "data.validation=0.1")
    told = cli.ok("train", write(tmp_path / "a.csv", noise), "--out", tmp_path / "run", *few).out
    epochs = len((tmp_path / "run" / "history.jsonl").read_text().splitlines())
    assert epochs < 9
    assert f"Stopped after epoch {epochs} of 9" in told
    assert "(lowest validation loss): accuracy" in told
    assert f"emhrnn serve {tmp_path / 'run'}" in told
    learned = emhrnn.load(tmp_path / "run").run.model.parameter_count
    for shown in (cli.ok("info", tmp_path / "run").out, cli.ok("info", tmp_path / "run", "--card").out):
        assert f"{learned:,} parameters" in shown  # more than before training, which counted no phrases
    told = cli.ok("train", tmp_path / "a.csv", "--out", tmp_path / "fit", *QUICK).out
    assert "epoch" not in told


def test_a_rare_class_is_told_of(cli: Cli, tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", [(f"Visit number{i} was fine.", "b" if i % 50 == 0 else "a") for i in range(300)])
    for told in (cli.ok("info", data).out, cli.ok("train", data, "--out", tmp_path / "run", *QUICK[:2]).err):
        assert "the class 'b' (6, 2.0%) is rare: use --set training.class_weight=balanced" in told


def test_duplicates_are_told_of_and_do_not_leak(cli: Cli, tmp_path: Path) -> None:
    """Labels are random, so that only a text that was trained on can be predicted."""
    rows = [(f"Visit number{i % 100}.", "ab"[(i % 100) * 7919 % 13 % 2]) for i in range(400)]
    data = write(tmp_path / "a.csv", [*rows, ("Visit number1.", "c"), ("Visit number2.", "c")])
    result = cli.ok("train", data, "--out", tmp_path / "run", "--json", *QUICK[:2])
    assert "302 documents repeating the text of another" in result.err
    assert "2 texts with different labels" in result.err
    assert result.json["valid"]["accuracy"] < 0.9


def test_several_labels_are_read_back_as_they_are_written(cli: Cli, tmp_path: Path) -> None:
    texts = {"plot": "The plot number{} was fine.", "cast": "The actors number{} were fine."}
    names = [("plot", "cast") if i % 3 == 0 else ("plot",) if i % 3 == 1 else ("cast",) for i in range(90)]
    rows = [(" ".join(texts[one].format(i) for one in some), "|".join(some)) for i, some in enumerate(names)]
    data = write(tmp_path / "a.csv", rows)
    cli.ok("train", data, "--out", tmp_path / "run", *QUICK)
    assert emhrnn.load(tmp_path / "run").classes == ("cast", "plot")
    cli.ok("predict", tmp_path / "run", data, "--out", tmp_path / "p.csv", "--quiet", "--workers", "1")
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        predicted = [row["label"] for row in csv.DictReader(file)]
    again = write(
        tmp_path / "again.csv", [(text, label) for (text, _), label in zip(rows, predicted, strict=True) if label]
    )
    assert {"cast", "plot", "cast|plot"}.issuperset(predicted)
    assert "cast|plot" in predicted
    assert cli.ok("evaluate", tmp_path / "run", again, "--json").json["accuracy"] == 1


def test_nothing_is_held_out_where_none_is_asked_for(cli: Cli, tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", ROWS)
    none = ("--set", "data.validation=0", "--set", "training.epochs=2", "--set", "training.threads=1")
    told = cli.ok("train", data, "--out", tmp_path / "run", *none)
    assert "60 documents" in told.err
    assert "language de" in told.err
    assert "Last epoch 2: accuracy" in told.out
    assert "on 60 training documents." in told.out
    more = cli.ok("train", "--out", tmp_path / "run", "--resume", "--set", "training.epochs=3")
    assert "Last epoch 3" in more.out
    assert emhrnn.load(tmp_path / "run").run.temperature == 1


def test_corrections_change_the_next_answer(cli: Cli, tmp_path: Path) -> None:
    quick = ("--set", "training.threads=1", "--quiet")
    cli.ok("train", write(tmp_path / "a.csv", ROWS), "--out", tmp_path / "run", *quick)
    text = GOOD.format("Z")
    assert emhrnn.load(tmp_path / "run").predict([text]) == ["Grüße"]
    corrections = tmp_path / "corrections.jsonl"
    lines = [json.dumps({"text": GOOD.format(f"Z{i}"), "label": "Lob"}) for i in range(20)]
    corrections.write_text("\n".join(lines))
    cli.ok("train", corrections, "--from", tmp_path / "run", "--out", tmp_path / "run2", *quick)
    model = emhrnn.load(tmp_path / "run2")
    assert model.classes == ("Größe", "Grüße", "Lob")
    assert model.predict([text, BAD.format("Z")]) == ["Lob", "Größe"]


def test_it_abstains_gives_sets_says_why_not_and_moves(cli: Cli, tmp_path: Path) -> None:
    """The coverage that is stated is the coverage that is measured on new rows."""
    noisy = [(text, "ab"[(i * 7919 % 10 == 0) ^ (label == "b")]) for i, (text, label) in enumerate(_opinions(900))]
    run, new = tmp_path / "run", write(tmp_path / "new.csv", noisy[600:])
    cli.ok("train", write(tmp_path / "a.csv", noisy[:600]), "--out", run, "--quiet", "--set", "data.validation=0.3")
    packed = tmp_path / "moved.emhrnn"
    cli.ok("pack", run, "--out", packed)
    out = tmp_path / "p.csv"
    options = ("--min-confidence", "0.6", "--coverage", "0.8", "--keep-columns", "--quiet", "--workers", "1")
    cli.ok("predict", packed, new, "--out", out, *options)
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    covered = sum(row["label"] in row["set"].split("|") for row in rows) / len(rows)
    assert covered >= 0.75  # 300 rows of 0.8 or more
    for row in rows:
        assert row["predicted_label"] == (row["guess"] if float(row["confidence"]) >= 0.6 else "")
    text = noisy[600][0]
    other = next(name for name in "ab" if name != emhrnn.load(packed).predict([text])[0])
    assert f"Why not {other}?" in cli.ok("explain", packed, text, "--why-not", other).out


def test_an_audit_lists_planted_errors_first(cli: Cli, tmp_path: Path) -> None:
    """Of 600 short generated reviews, which are easy, 30 have the other label; benchmarks/audit.py has real ones."""
    reviews = [review for review in everyday_reviews(1000, seed=5) if review.label != "3"][:600]
    rows = [(review.text, "good" if review.label in "45" else "bad") for review in reviews]
    wrong = set(random.Random(0).sample(range(600), 30))
    data = write(
        tmp_path / "a.csv", [(text, _other(label) if i in wrong else label) for i, (text, label) in enumerate(rows)]
    )
    report = cli.ok("audit", data, "--limit", "60", "--json", "--quiet").json
    assert len(wrong & {suspect["row"] for suspect in report["suspects"]}) >= 25


def test_a_trained_run_audits_other_rows(cli: Cli, tmp_path: Path) -> None:
    run, new = tmp_path / "run", tmp_path / "new.csv"
    data = write(tmp_path / "a.csv", ROWS)
    cli.ok("train", data, "--out", run, *QUICK)
    fresh = [(text.replace("war", "ist"), label) for text, label in ROWS[:20]]
    write(new, [(text, _other(label) if i == 3 else label) for i, (text, label) in enumerate(fresh)])
    (suspect,) = cli.ok("audit", new, "--run", run, "--json").json["suspects"]
    assert (suspect["row"], suspect["label"], suspect["suggested"]) == (3, "Grüße", "Größe")
    assert "was trained on" in cli.error("audit", data, "--run", run)
    write(new, [(fresh[0][0], "Neu"), *fresh[1:]])
    assert "'Neu'" in cli.error("audit", new, "--run", run)


def _other(label: str) -> str:
    return {"good": "bad", "bad": "good", "Grüße": "Größe", "Größe": "Grüße"}[label]


def _opinions(count: int) -> list[tuple[str, str]]:
    words = {"a": ("lovely", "kind", "warm", "quiet"), "b": ("rude", "cold", "loud", "dirty")}
    return [(f"The room {i} was {words['ab'[i % 2]][i // 2 % 4]} on day {i % 7}.", "ab"[i % 2]) for i in range(count)]
