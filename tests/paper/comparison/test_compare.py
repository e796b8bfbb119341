"""The whole of it: bad input, and a comparison that is killed and gone on with."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emhrnn.corpus.reviews import generate_reviews, write_reviews
from emhrnn.paper.comparison import Key, Protocol, _jobs
from emhrnn.paper.comparison.data import DataSet
from emhrnn.paper.comparison.rows import _predicted, parse_rows, unpack
from emhrnn.paper.jobs import JobSpec
from tests.behaviour.commands import TINY, Cli

ROWS = "tfidf-lr,hn-att,local=em-hrnn[em.blocks=2,em.block_length=3]"


def demo(folder: Path, documents: int = 100) -> Path:
    write_reviews(folder / "demo.jsonl", list(generate_reviews(documents, 0)))
    return folder / "demo.jsonl"


def command(data: Path, out: Path) -> list[str]:
    settings = ("epochs=3", "batch_words=1500", "checkpoint_seconds=0", "threads=1")  # slow enough to be killed
    shared = [part for setting in settings for part in ("--set", f"training.{setting}")]
    options = [*TINY, *shared, "--seeds", "1", "--processes", "2", "--reference", "hn-att"]
    return ["compare", str(data), "--models", ROWS, "--out", str(out), *options]


def timeless(folder: Path) -> dict[str, Any]:
    """The table without what no repetition can repeat."""
    table = json.loads((folder / "table.json").read_text())
    for row in table["rows"]:
        for name in ("training_seconds", "words_per_second", "documents_per_second"):
            del row[name]
    del table["made_by"]["command"]  # names the folder
    return dict(table)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")  # all but the command that is killed
def test_killed_in_the_middle_and_gone_on_with_it_gives_the_same_table(tmp_path: Path, cli: Cli) -> None:
    data, whole, killed = demo(tmp_path), tmp_path / "whole", tmp_path / "killed"
    told = cli.ok(*command(data, whole)).out
    assert "local" in told
    process = subprocess.Popen(
        [sys.executable, "-m", "emhrnn", *command(data, killed)], stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")},
    )  # fmt: skip
    deadline = time.monotonic() + 600
    while not any(killed.glob("runs/*/run/checkpoint/*.safetensors")):  # in the middle of a training
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (killed / "table.json").exists()
    again = cli.ok(*command(data, killed), "--json")
    assert timeless(killed) == timeless(whole)
    assert timeless(killed)["rows"][0]["accuracy"] == again.json["rows"][0]["accuracy"]  # type: ignore[index]
    assert len(timeless(whole)["rows"]) == 3
    assert (killed / "table.md").stat().st_size > 1000
    run = json.loads((killed / "runs" / "demo--hn-att--0.json").read_text())
    assert run["arguments"]["settings"]["training"]["epochs"] == 3
    assert not (killed / "runs" / "demo--hn-att--0" / "run" / "checkpoint").exists()
    scores = cli.ok(
        "evaluate", killed / "runs" / "demo--hn-att--0" / "run", killed / "data" / "demo" / "test", "--json"
    )
    assert run["result"]["loss"] == scores.json["loss"]  # of calibrated probabilities, as everywhere
    told = cli.error(*command(data, killed), "--set", "training.epochs=4")
    assert "the job demo--hn-att--0" in told  # the row before it is fitted at once, and reads no epochs
    assert "give another folder" in told
    (killed / "runs" / "demo--local--0.json").unlink()
    report = cli.ok(*command(data, killed), "--report", "--json").json
    assert [row["model"] for row in report["rows"]] == ["tfidf-lr", "hn-att"]  # type: ignore[index]
    assert report["missing"] == [{"data": "demo", "model": "local", "why": "not done: seed 0"}]  # type: ignore[index]


@pytest.mark.usefixtures("in_this_process")
def test_records_alone_are_enough_to_add_a_row_elsewhere(tmp_path: Path, cli: Cli) -> None:
    """Models and corpora are large, and may go; data may lie elsewhere. What is done stays done."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    options = ["--seeds", "1", "--processes", "1", "--quiet", "--json"]
    cli.ok("compare", demo(here), "--models", "tfidf-lr", "--out", here / "out", *options)
    records = [here / "out" / "data" / "demo.json", here / "out" / "runs" / "demo--tfidf-lr--0.json"]
    for record in records:
        assert str(tmp_path) not in record.read_text()
        kept = there / record.relative_to(here)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(record.read_text())
    shutil.move(here / "demo.jsonl", there / "demo.jsonl")
    shutil.rmtree(here)
    again = ["compare", there / "demo.jsonl", "--out", there / "out", *options]
    report = cli.ok(*again, "--models", "tfidf-lr", "--report").json
    both = cli.ok(*again, "--models", "tfidf-lr,tfidf-svm").json
    assert [row["model"] for row in both["rows"]] == ["tfidf-lr", "tfidf-svm"]  # type: ignore[index]
    assert both["rows"][0]["accuracies"] == report["rows"][0]["accuracies"]  # type: ignore[index]
    assert both["rows"][1]["against"]["mcnemar_p"] is not None  # type: ignore[index]
    assert not (there / "out" / "runs" / "demo--tfidf-lr--0").exists()  # it was not done again


def test_the_last_of_many_classes_may_be_right() -> None:
    labels, probabilities = np.array([2**15 + 1, 5]), np.zeros((2, 2**15 + 2), dtype=np.float32)
    probabilities[[0, 1], [2**15 + 1, 6]] = 1
    predicted, right = _predicted(probabilities, labels)
    assert predicted.tolist() == [2**15 + 1, 6]
    assert right.tolist() == [True, False]


def test_a_report_of_nothing_does_nothing(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    told = cli.error("compare", demo(tmp_path), "--models", "tfidf-lr", "--out", out, "--report", "--quiet")
    assert "holds nothing of demo with these settings; leave out --report" in told
    assert not (out / "data").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_row_that_fails_stops_no_other_and_is_told_by_the_exit_code(tmp_path: Path, cli: Cli) -> None:
    """A script must not take the table for whole; a report runs nothing, so nothing of it fails."""
    out = tmp_path / "out"
    rows = "bad=em-hrnn[em.estep=exact],tfidf-lr"  # no document is short enough for the exact E-step
    given = ["compare", demo(tmp_path), "--models", rows, "--out", out, "--seeds", "1", "--quiet", *TINY]
    result = cli(*given, "--json")
    assert result.code == 2
    assert "1 run failed: demo--bad--0;" in result.err
    assert [row["model"] for row in result.json["rows"]] == ["tfidf-lr"]  # type: ignore[index,union-attr]
    assert "at most 20 can be enumerated" in (out / "table.md").read_text()
    assert "bad: seed 0 failed" in cli.ok(*given, "--report").out


@pytest.mark.usefixtures("in_this_process")
def test_folds_test_every_document_once_and_can_be_gone_on_with(tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    given = ["compare", demo(tmp_path), "--models", "tfidf-lr,nb-lr", "--out", out, "--folds", "2", "--seeds", "2"]
    made = cli.ok(*given, "--quiet", "--json").json
    found = made["sets"]["demo"]  # type: ignore[index]
    assert (found["folds"], found["parts"]["test"]["documents"]) == (2, 100)
    assert [row["seeds"] for row in made["rows"]] == [2, 2]  # type: ignore[index]
    first, second = made["rows"]  # type: ignore[index]
    assert second["against"]["mcnemar_p"] is not None
    runs = [out / "runs" / f"demo.fold-{fold}-of-2--tfidf-lr--1.json" for fold in (1, 2)]
    results = [json.loads(run.read_text())["result"] for run in runs]
    right = np.concatenate([unpack(result["right"], result["documents"]) for result in results])
    assert len(right) == 100
    assert first["accuracies"][1] == pytest.approx(right.mean())
    told = (out / "table.md").read_text()
    for words in ("100 documents, each tested once in one of 2 folds", "2-fold cross-validation of all", "are pooled"):
        assert words in told
    runs[1].unlink()
    report = cli.ok(*given, "--quiet", "--json", "--report").json
    assert [row["seeds"] for row in report["rows"]] == [1, 2]  # type: ignore[index]
    assert report["missing"] == [{"data": "demo", "model": "tfidf-lr", "why": "not done: seed 1 (fold 2)"}]  # type: ignore[index]
    before = runs[0].stat().st_mtime_ns
    again = cli.ok(*given, "--quiet", "--json").json
    assert again["rows"][0]["accuracies"] == first["accuracies"]  # type: ignore[index]
    assert runs[0].stat().st_mtime_ns == before
    assert "--test has no use" in cli.error(*given, "--test", tmp_path / "demo.jsonl")


def jobs_of(rows: str, protocol: Protocol, *, documents: int = 5000, classes: int = 2) -> dict[Key, JobSpec]:
    train = {"sha256": "0", "documents": documents}
    found = {"set": {"parts": {"train": train}, "classes": [*"c" * classes], "users": 0, "products": 0}}
    jobs, missing = _jobs([DataSet("set", Path("set.csv"))], parse_rows([rows]), found, protocol)
    assert not missing
    return jobs


def test_settings_that_a_row_does_not_read_may_change() -> None:
    """So that runs of the other rows stay good when EM-HRNN's defaults change."""

    def keys(*assignments: str) -> dict[str, Any]:
        jobs = jobs_of("hn-att,local=em-hrnn,tfidf-lr", Protocol(seeds=1, assignments=assignments))
        return {key.row: job.arguments for key, job in jobs.items()}

    before = keys()
    for assignment in ("em.estep=blocks", "model.cell=lstm", "model.skip=false", "model.segmentation=words"):
        after = keys(assignment)
        assert after["hn-att"] == before["hn-att"]
        assert after["local"] != before["local"]
    assert keys("model.features=9") == before  # cnn-word's
    assert keys("model.word_size=40")["hn-att"] != before["hn-att"]
    after = keys("training.epochs=3")
    assert after["tfidf-lr"] == before["tfidf-lr"]  # fitted in one go
    assert after["hn-att"] != before["hn-att"]
    assert keys("training.class_weight=balanced")["tfidf-lr"] != before["tfidf-lr"]


@pytest.mark.parametrize(
    ("facts", "own"),
    [({}, {}), ({"classes": 20}, {"presence": 0.3}), ({"documents": 500}, {"sentence_weights": 0, "encoder_size": 0})],
)
def test_a_row_has_the_defaults_that_suit_the_data(facts: dict[str, int], own: dict[str, Any]) -> None:
    """As `emhrnn train` has; also with settings for all rows, which a job holds in full."""
    everywhere = Protocol(seeds=1, assignments=("training.learning_rate=0.01",))
    usual, found = (jobs_of("evidence", everywhere, **more) for more in ({}, facts))
    (before,), (after,) = ([job.arguments["settings"]["model"] for job in jobs.values()] for jobs in (usual, found))
    assert after == {**before, **own}
    (given,) = jobs_of("evidence[model.presence=0.5,model.sentence_weights=32]", everywhere, **facts).values()
    assert {given.arguments["settings"]["model"][name] for name in ("presence", "sentence_weights")} == {0.5, 32}


def test_weights_are_told_by_name_and_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mini").mkdir()
    for part in "ab":  # sharded
        Path("mini", f"{part}.safetensors").write_bytes(part.encode())
    (local,) = jobs_of("transformer[model.pretrained=./mini/]", Protocol(seeds=1)).values()
    assert local.arguments["settings"]["model"]["pretrained"] == "mini"
    assert local.arguments["pretrained_sha256"] == hashlib.sha256(b"ab").hexdigest()
    assert local.places["pretrained"] == str(tmp_path / "mini")
    (cached,) = jobs_of("transformer[model.pretrained=org/model]", Protocol(seeds=1)).values()
    assert cached.arguments["settings"]["model"]["pretrained"] == "org/model"
    assert "pretrained" not in cached.places
    everywhere = Protocol(seeds=1, assignments=("model.pretrained=mini",))
    for other in (cached, *jobs_of("hn-att,tfidf-lr", everywhere).values()):
        assert list(other.arguments) == ["data", "data_sha256", "row", "settings", "vectors_sha256"]


def test_a_row_in_which_nothing_is_drawn_has_one_seed() -> None:
    rows = "transformer[model.pretrained=x],frozen=transformer[model.pretrained=x,model.frozen=true],tfidf-lr"
    keys = jobs_of(rows, Protocol(seeds=3))
    assert [key.seed for key in keys if key.row == "frozen"] == [0]
    assert len(keys) == 3 + 1 + 3


@pytest.mark.usefixtures("in_this_process")
def test_a_row_that_the_data_cannot_train_is_no_reference(tmp_path: Path, cli: Cli) -> None:
    told = cli.ok(
        "compare", demo(tmp_path), "--models", "cma,tfidf-lr,tfidf-svm", "--out", tmp_path / "out", "--seeds", "1",
        "--processes", "1", "--quiet", "--json",
    )  # fmt: skip
    assert told.json["reference"] == "tfidf-lr"
    assert [row["model"] for row in told.json["rows"] if row["against"] is not None] == ["tfidf-svm"]


@pytest.mark.usefixtures("in_this_process")
def test_bad_input_is_one_line(tmp_path: Path, cli: Cli) -> None:
    data, out = demo(tmp_path, 20), tmp_path / "out"

    def error(*more: str) -> str:
        return cli.error("compare", data, "--out", out, "--processes", "1", *more)

    assert "unknown model 'hnatt'; did you mean 'hn-att'?" in error("--models", "hnatt")
    told = error("--models", "lstm,hn-att", "--reference", "em-hrnn")
    assert "the reference 'em-hrnn' is not among the rows; give one of lstm, hn-att" in told
    assert "unknown setting 'em.blokcs'; did you mean 'em.blocks'?" in error("--models", "em-hrnn[em.blokcs=2]")
    assert "none.npz does not exist; give a file of word vectors" in error("--models", "lstm", "--vectors", "none.npz")
    assert not out.exists()
    one = tmp_path / "one.jsonl"
    one.write_text("".join(json.dumps({"text": f"text {i}", "label": "a"}) + "\n" for i in range(30)))
    told = cli.error("compare", one, "--out", out, "--models", "lstm", "--quiet")
    assert "one: all 24 documents have the class 'a'; training needs at least two classes" in told
    no_test = tmp_path / "no_test.jsonl"
    no_test.write_text("".join(json.dumps({"text": "a", "label": i % 2, "split": "train"}) + "\n" for i in range(9)))
    told = cli.error("compare", no_test, "--out", out, "--models", "lstm", "--quiet")
    assert "no rows to test on: the split column of" in told
