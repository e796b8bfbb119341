"""Every command once as a person would use it."""

import csv
import json
import math
import os
import re
from pathlib import Path

import pyarrow.parquet
import pytest

from emhrnn.training.config import settings_of
from tests.behaviour.commands import GOOD, TINY, Cli, tiny, write_reviews

COMMANDS = [
    "demo", "train", "tune", "evaluate", "calibrate", "predict",
    "explain", "export", "serve", "info", "compare", "models", "pack", "audit", "drift",
]  # fmt: skip


def test_help_names_every_command_and_how_to_start(cli: Cli) -> None:
    help = cli.ok("--help").out
    assert "emhrnn demo" in help
    assert "emhrnn train reviews.csv --out run" in help
    assert "Exit codes" in help
    assert all(f"\n  {command} " in help for command in COMMANDS)
    assert "..." not in help.split("Every day:")[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_fits_a_terminal_and_has_two_examples(cli: Cli, command: str) -> None:
    help = cli.ok(command, "-h").out
    assert max(map(len, help.splitlines())) <= 100
    assert help.count(f"  emhrnn {command}") >= 2


@pytest.mark.parametrize("command", ["train", "tune"])
def test_help_lists_the_settings_of_the_model(cli: Cli, command: str) -> None:
    """Of the default model, or of the one that is named; with its own defaults."""
    for model, options in (
        ("evidence", []),
        ("em-hrnn", ["--model", "em-hrnn"]),
        ("hn-att", ["--set", "model.name=hn-att"]),
    ):
        help = cli.ok(command, *options, "--help").out
        shown = re.findall(r"^  (\w+\.\w+) = ", help, flags=re.MULTILINE)
        assert shown == list(settings_of(model))
        assert "train --model NAME --help" in help
        assert ("training.epochs = 6 " in help) == (model == "evidence")
    fitted = cli.ok(command, "--model=tfidf-lr", "--help").out
    assert "model.max_features = 200000" in fitted
    assert "training.epochs" not in fitted.partition("Settings [")[2]
    assert "unknown model 'hn-at'; did you mean 'hn-att'?" in cli.error(command, "--model", "hn-at", "--help")


def test_help_of_compare_lists_the_settings_of_all_models(cli: Cli) -> None:
    help = cli.ok("compare", "--help").out
    assert "data.min_count = 2" in help
    assert "model.word_size" not in help


def test_version(cli: Cli) -> None:
    assert cli.ok("--version").out == "emhrnn 0.2.0\n"


def test_wrong_usage_is_exit_code_2(cli: Cli) -> None:
    for arguments in (["trian"], ["train"], ["train", "x", "--out", "y", "--epochs", "3"], ["demo", "--seed", "-1"]):
        result = cli(*arguments)
        assert (result.code, result.out) == (2, "")
        assert "Error: " in result.err


def test_train_evaluate_predict_explain_info(cli: Cli, tmp_path: Path) -> None:
    data, run = write_reviews(tmp_path / "reviews.csv", 24), tmp_path / "run"
    trained = cli.ok("train", data, "--out", run, "--json", "--quiet", *TINY)
    assert trained.err == ""
    assert trained.json["run"] == str(run)
    assert {path.name for path in run.iterdir()} == {
        "card.md", "checkpoint", "config.json", "corpus", "history.jsonl", "metrics.json", "model.safetensors",
        "vocabulary.txt",
    }  # fmt: skip
    scores = cli.ok("evaluate", run, data, "--json").json
    assert scores["documents"] == 24
    assert {"accuracy", "macro_f1", "loss", "confusion"} <= set(scores)
    table = cli.ok("evaluate", run, data).out
    assert "accuracy" in table
    assert "columns: predicted class" in table
    assert cli.ok("info", run, "--json").json["kind"] == "run"
    assert "em-hrnn" in cli.ok("info", run).out


def test_train_says_what_to_type_next(cli: Cli, tmp_path: Path) -> None:
    data, run = write_reviews(tmp_path / "reviews.jsonl", 24), tmp_path / "run"
    result = cli.ok("train", data, "--out", run, *TINY)
    assert f"emhrnn evaluate {run} TEST_DATA" in result.out
    assert f"emhrnn explain {run}" in result.out
    other = tmp_path / "an other"
    told = cli.ok("train", data, "--out", other, *tiny("hn-max")).out
    assert "emhrnn explain" not in told
    assert f"emhrnn evaluate '{other}' TEST_DATA" in told
    told = cli.ok("paper", "prepare", data, "--out", tmp_path / "a corpus", "--like", other).out
    assert f"emhrnn evaluate '{other}' '{tmp_path / 'a corpus'}'" in told
    assert "\r" not in result.err  # no bar where stderr is not a terminal
    material, epoch = result.err.splitlines()
    assert material.startswith("reviews.jsonl: 22 documents of ")
    assert "text from 'text', label from 'label'" in material
    assert epoch.startswith("epoch   1/1")


def test_predictions_in_three_formats_agree(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    out = {suffix: tmp_path / f"labels.{suffix}" for suffix in ("csv", "jsonl", "parquet", "JSONL")}
    for path in out.values():
        assert cli.ok("predict", run, made / "test.jsonl", "--out", path, "--json").json["rows"] == 8
    lines = [json.loads(line) for line in out["jsonl"].read_text().splitlines()]
    assert [line["id"] for line in lines] == [str(i) for i in range(8)]
    assert all(abs(line["p_bad"] + line["p_good"] - 1) < 1e-6 for line in lines)
    assert out["JSONL"].read_text() == out["jsonl"].read_text()
    with out["csv"].open(newline="") as file:
        from_csv = list(csv.DictReader(file))
    assert [{k: str(v) for k, v in line.items()} for line in lines] == from_csv
    table = pyarrow.parquet.read_table(out["parquet"])
    assert table.column("label").to_pylist() == [line["label"] for line in lines]
    assert table.column("p_good").to_pylist() == pytest.approx([line["p_good"] for line in lines], abs=1e-7)


def test_rows_without_words_are_predicted_too(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = tmp_path / "some.jsonl"
    data.write_text('{"text": "good", "id": "a"}\n{"text": "   ", "id": "b"}\n{"text": null, "id": "c"}\n')
    cli.ok("predict", run, data, "--out", tmp_path / "p.jsonl")
    found = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert [row["id"] for row in found] == ["a", "b", "c"]
    assert found[1]["p_good"] == found[2]["p_good"]


def test_marked_sentence_ends_count_in_predict_as_in_evaluate(cli: Cli, run: Path, tmp_path: Path) -> None:
    sentences = ["the soup was good . we liked it", "no ! really", "bad"]
    row = "u\t\tp\t\tgood\t\t" + " <sssss> ".join(sentences)
    (tmp_path / "a.ss").write_text(row + "\n")
    cli.ok("predict", run, tmp_path / "a.ss", "--out", tmp_path / "p.jsonl")
    cli.ok("paper", "prepare", tmp_path / "a.ss", "--out", tmp_path / "corpus", "--like", run)
    predicted = json.loads((tmp_path / "p.jsonl").read_text())["p_good"]
    for data in (tmp_path / "a.ss", tmp_path / "corpus"):
        loss = cli.ok("evaluate", run, data, "--json").json["loss"]
        assert loss == pytest.approx(-math.log(predicted), abs=1e-5)


def test_explain_three_ways_to_give_and_three_to_show(cli: Cli, run: Path, tmp_path: Path) -> None:
    (tmp_path / "review.txt").write_text(GOOD)
    shown = cli.ok("explain", run, GOOD).out
    assert "Decided most by" in shown or "of this text supports it" in shown
    assert cli.ok("explain", run, "--file", tmp_path / "review.txt").out == shown
    assert cli.ok("explain", run, "-", stdin=GOOD.encode()).out == shown
    reader, writer = os.pipe()
    os.write(writer, GOOD.encode())
    os.close(writer)
    assert cli.ok("explain", run, "--file", f"/dev/fd/{reader}").out == shown  # as --file <(...) gives it
    os.close(reader)
    assert cli.ok("explain", run, GOOD, "--json").json["text"] == GOOD
    page = tmp_path / "why.html"
    assert f"see {page}" in cli.ok("explain", run, GOOD, "--html", page).out
    assert "<html" in page.read_text()


def test_a_prepared_corpus_gives_the_same_weights_as_its_file(cli: Cli, made: Path, tmp_path: Path) -> None:
    corpus, settings = tmp_path / "corpus", [*TINY, "--set", "data.min_count=3", "--quiet"]
    assert f"emhrnn train {corpus}" in cli.ok("paper", "prepare", made / "reviews.csv", "--out", corpus).out
    cli.ok("train", corpus, "--out", tmp_path / "a", *settings)
    cli.ok("train", made / "reviews.csv", "--out", tmp_path / "b", *settings)
    for name in ("model.safetensors", "vocabulary.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_test_data_prepared_like_a_run_scores_the_same(cli: Cli, made: Path, run: Path, tmp_path: Path) -> None:
    only_good = tmp_path / "good.jsonl"
    lines = (made / "test.jsonl").read_text().splitlines(keepends=True)
    only_good.write_text("".join(line for line in lines if '"good"}' in line))
    corpus = tmp_path / "corpus"
    assert f"emhrnn evaluate {run}" in cli.ok("paper", "prepare", only_good, "--out", corpus, "--like", run).out
    assert cli.ok("evaluate", run, corpus, "--json").json == cli.ok("evaluate", run, only_good, "--json").json


def test_validation_data_may_be_a_file_a_corpus_or_a_split(cli: Cli, made: Path, tmp_path: Path) -> None:
    settings = ["--quiet", "--json", *TINY]
    cli.ok("paper", "prepare", made / "test.jsonl", "--out", tmp_path / "corpus")
    for name in (made / "test.jsonl", tmp_path / "corpus"):
        trained = cli.ok(
            "train", made / "reviews.csv", "--out", tmp_path / f"{name.stem}-run", "--valid", name, *settings
        )
        assert trained.json["valid"]["documents"] == 8  # type: ignore[index]
    split = tmp_path / "all.csv"
    text = (made / "reviews.csv").read_text().splitlines()
    parts = ["split", *["dev"] * 6, *["train"] * 18]
    split.write_text("\n".join(f"{row},{part}" for row, part in zip(text, parts, strict=True)))
    options = ["--split", "train", "--valid-split", "dev"]
    trained = cli.ok("train", split, "--out", tmp_path / "split-run", *options, *settings)
    assert trained.json["valid"]["documents"] == 6  # type: ignore[index]
    assert cli.ok("info", tmp_path / "split-run", "--json").json["data"]["train"]["documents"] == 18  # type: ignore[index]


def test_tables_of_which_a_run_failed_are_shown_and_end_with_code_2(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from emhrnn.paper.comparison.table import ComparisonTable as Comparison
    from emhrnn.paper.simulation import RecoveryTable as Simulation
    from emhrnn.paper.table2 import Table2

    compared = Table2(Comparison({}, (), (), "hn-att", (0,), {}, failed=("yelp--HN-ATT--0",)), ())
    simulated = Simulation({}, (), (), failures=("state-exact-10: its process ended with code 1",))
    monkeypatch.setattr("emhrnn.paper.table2.reproduce_table2", lambda *_, **__: compared)
    monkeypatch.setattr("emhrnn.paper.simulation.simulate", lambda *_, **__: simulated)
    for table, failed in (("table2", "yelp--HN-ATT--0"), ("table1", "state-exact-10")):
        result = cli("paper", table, "--quick", "--json")
        assert result.code == 2
        assert result.json
        assert f"1 run failed: {failed};" in result.err
