"""`emhrnn tune`, as a person uses it: search, stop, go on, train with what came out."""

import csv
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from emhrnn.cli import main
from emhrnn.training.config import make_config
from tests.behaviour.commands import TINY, Cli, rows, write_reviews, write_rows

RATES = ("--only", "--vary", "training.learning_rate=0.001:0.1:log")
SLOW = (
    "--set",
    "training.epochs=500",
    "--set",
    "training.patience=500",
    "--set",
    "training.threads=1",
)  # never ends by itself


def trials_of(out: Path) -> list[dict[str, str]]:
    with (out / "trials.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def journal(out: Path) -> list[dict[str, object]]:
    path = out / "journal.log"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_reviews(tmp_path / "reviews.csv", 40)


class Elsewhere:
    """The command in a process of its own. Forked: a new interpreter would take seconds to load torch."""

    def __init__(self, out: Path, *arguments: str | Path) -> None:
        self.out, self.log = out, out.parent / "log"
        self.pid = os.fork()
        if self.pid == 0:
            self._run(["emhrnn", "tune", *map(str, arguments), "--out", str(out), *TINY, *SLOW, *RATES])

    def _run(self, arguments: list[str]) -> NoReturn:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = arguments
        code: object = 1
        try:
            with self.log.open("w", buffering=1) as sys.stdout:
                sys.stderr = sys.stdout
                main()
        except SystemExit as ended:
            code = ended.code
        finally:
            os._exit(code if isinstance(code, int) else 0)

    def wait_for_an_epoch(self) -> None:
        until = time.time() + 60
        while not any("intermediate_value" in entry for entry in journal(self.out)):
            assert os.waitpid(self.pid, os.WNOHANG) == (0, 0), self.log.read_text()
            assert time.time() < until
            time.sleep(0.02)

    def end(self, number: int) -> int:
        os.kill(self.pid, number)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_search_train_and_go_on(cli: Cli, data: Path, tmp_path: Path) -> None:
    out, call = tmp_path / "study", ("tune", data, "--out", tmp_path / "study", "--quiet", *TINY)
    told = cli.ok(*call, "--trials", "2", "--model", "em-hrnn", "--set", "training.epochs=2").out
    assert "Best of 2: trial " in told
    assert f"--config {out / 'best.toml'} --out run" in told
    first, second = trials_of(out)
    assert float(first["training.learning_rate"]) == make_config(model="em-hrnn").training.learning_rate  # as they are
    assert first["training.learning_rate"] != second["training.learning_rate"]
    assert "model.word_size" not in first  # --set holds it
    text = (out / "best.toml").read_text()
    assert text.startswith("# emhrnn tune ")
    best = max((first, second), key=lambda row: float(row["value"]))
    assert f"# accuracy {float(best['value']):.4f} on the validation data: trial {best['trial']} of 2, done" in text
    config = make_config(file=out / "best.toml")
    assert config.training.learning_rate == float(best["training.learning_rate"])
    assert (config.training.epochs, config.model.word_size) == (2, 3)
    # the same settings give the same score, bit for bit
    trained = cli.ok("train", data, "--out", tmp_path / "run", "--config", out / "best.toml", "--quiet", "--json").json
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    assert history[trained["best_epoch"] - 1]["valid"]["accuracy"] == float(best["value"])
    # the same command goes on
    result = cli.ok(*call, "--trials", "3", "--model", "em-hrnn", "--set", "training.epochs=2", "--json").json
    assert result["trials"] == 3
    assert trials_of(out)[:2] == [first, second]


def test_a_system_that_is_fitted_at_once(cli: Cli, data: Path, tmp_path: Path) -> None:
    valid = write_reviews(tmp_path / "valid.csv", 10)
    call = ("tune", data, "--out", tmp_path / "t", "--model", "tfidf-lr", "--trials", "7", "--valid", valid)
    told = cli.ok(*call)
    assert "model.C" in told.out
    assert told.err.count("trial ") == 7  # a line for each
    assert make_config(file=tmp_path / "t" / "best.toml").model.name == "tfidf-lr"
    assert {row["epochs"] for row in trials_of(tmp_path / "t")} == {"1"}
    written = {name: (tmp_path / "t" / name).read_bytes() for name in ("best.toml", "trials.csv")}
    for name in written:
        (tmp_path / "t" / name).unlink()  # as a kill after the last trial leaves it
    cli.ok(*call)
    assert {name: (tmp_path / "t" / name).read_bytes() for name in written} == written


def test_every_value_of_a_single_list(cli: Cli, data: Path, tmp_path: Path) -> None:
    """The paper's learning rate is found so."""
    out, rates = tmp_path / "t", ("--only", "--vary", "training.learning_rate=0.01,0.1,1.0")
    cli.ok("tune", data, "--out", out, "--preset", "paper", *rates, "--quiet", *TINY)
    assert [float(row["training.learning_rate"]) for row in trials_of(out)] == [0.01, 0.1, 1.0]
    assert {row["state"] for row in trials_of(out)} == {"done"}
    config = make_config(file=out / "best.toml")
    assert config.training.optimizer == "sgd"
    assert config.em.theta == "all"


def test_time_runs_out_within_a_trial(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    told = cli.ok("tune", data, "--out", out, "--minutes", "0.03", "--quiet", *TINY, *SLOW, *RATES).out
    assert "Too few trials" in told
    assert trials_of(out)[-1]["state"] == "done, cut at the time limit"
    assert make_config(file=out / "best.toml").training.epochs == 500


def test_no_time_for_one_trial(cli: Cli, tmp_path: Path) -> None:
    data, out = write_reviews(tmp_path / "many.csv", 3000), tmp_path / "t"
    small = ("--set", "training.batch_words=20")
    message = cli.error("tune", data, "--out", out, "--minutes", "0.01", "--quiet", *TINY, *RATES, *small)
    assert "the time was too short for one epoch of one trial; give more with --minutes" in message
    assert not (out / "best.toml").exists()


def test_a_killed_search_goes_on_and_tries_its_trial_again(cli: Cli, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    other = Elsewhere(out, data)
    other.wait_for_an_epoch()
    other.end(signal.SIGKILL)
    assert not (out / "best.toml").exists()
    with (out / "journal.log").open("a") as file:
        file.write('{"op_code": 5, "torn')  # as a kill within a write leaves it
    cli.ok("tune", data, "--out", out, "--minutes", "0.03", "--quiet", *TINY, *SLOW, *RATES)
    first, again = trials_of(out)[:2]
    assert (first["state"], again["state"]) == ("stopped", "done, cut at the time limit")
    assert first["training.learning_rate"] == again["training.learning_rate"]


def test_one_searches_at_a_time_until_ctrl_c(cli: Cli, data: Path, tmp_path: Path) -> None:
    out, call = tmp_path / "t", ("--minutes", "0.03", "--quiet", *TINY, *SLOW, *RATES)
    other = Elsewhere(out, data)
    other.wait_for_an_epoch()
    assert f"is searching in {out}; wait for it" in cli.error("tune", data, "--out", out, *call)
    assert other.end(signal.SIGINT) == 130
    assert f"interrupted; the same command resumes the study in {out}" in other.log.read_text()
    assert "Traceback" not in other.log.read_text()
    cli.ok("tune", data, "--out", out, *call)
    stopped, again = trials_of(out)[:2]
    assert (stopped["state"], again["state"]) == ("stopped", "done, cut at the time limit")
    assert stopped["training.learning_rate"] == again["training.learning_rate"]


def test_another_study_in_the_folder_is_refused(cli: Cli, data: Path, tmp_path: Path) -> None:
    call = ("--out", tmp_path / "t", "--trials", "1", "--quiet", *TINY)
    cli.ok("tune", data, *call, *RATES)
    message = cli.error("tune", data, *call, *RATES, "--set", "training.epochs=7")
    assert "holds a study of another setting: training.epochs is 1 there, 7 here; give the same, or" in message
    message = cli.error("tune", data, *call, "--only", "--vary", "training.learning_rate=0.1,0.2")
    assert "another space: training.learning_rate is '0.001:0.1:log' there, '0.1,0.2' here" in message
    other = write_rows(tmp_path / "other.csv", rows(20))
    assert "holds a study of other data: reviews.csv (" in cli.error("tune", other, *call, *RATES)
    assert "of other validation data: none, given other.csv" in cli.error("tune", data, *call, *RATES, "--valid", other)
    assert "is not empty and holds no study" in cli.error("tune", data, "--out", tmp_path, *TINY, *RATES)


def test_what_cannot_be_tuned(cli: Cli, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "t"
    call = ("tune", data, "--out", out)
    assert "did you mean 'em.blocks'?" in cli.error(*call, "--model", "em-hrnn", "--vary", "em.block=1:2")
    assert "nothing varies; give a setting with --vary" in cli.error(*call, "--only")
    assert "unknown model 'em-hrn'; did you mean 'em-hrnn'?" in cli.error(*call, "--model", "em-hrn")
    assert "nothing.csv does not exist; check the name" in cli.error("tune", tmp_path / "nothing.csv", "--out", out)
    one_class = write_rows(tmp_path / "one.csv", [("fine", "good")] * 20)
    assert "training needs at least two classes" in cli.error("tune", one_class, "--out", out, "--quiet")
    assert not out.exists()
    for name in [name for name in sys.modules if name.startswith(("optuna", "emhrnn.tuning"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "emhrnn tune needs Optuna; pip install 'emhrnn[tune]'" in cli.error(*call)
