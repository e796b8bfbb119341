"""Ctrl-C, a kill and a closed pipe: what is left, and what is said."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from emhrnn.training import train
from tests.behaviour.commands import TINY, Cli, write_reviews

EMHRNN = [sys.executable, "-m", "emhrnn"]


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_before_the_first_epoch_leaves_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_reviews(tmp_path / "reviews.csv", 24)
    monkeypatch.setattr(train, "validate_epoch", interrupt)
    result = cli("train", data, "--out", tmp_path / "run", "--quiet", *TINY)
    assert (result.code, result.out) == (130, "")
    assert f"emhrnn: interrupted; no epoch was done, so nothing is left at {tmp_path / 'run'}\n" == result.err
    assert not (tmp_path / "run").exists()


def test_ctrl_c_later_leaves_the_best_model(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, run = write_reviews(tmp_path / "reviews.csv", 24), tmp_path / "run"
    validate, calls = train.validate_epoch, []

    def second_time(*arguments: object) -> object:
        calls.append(1)
        return validate(*arguments) if len(calls) < 2 else interrupt()  # type: ignore[arg-type]

    monkeypatch.setattr(train, "validate_epoch", second_time)
    result = cli("train", data, "--out", run, "--quiet", *TINY, "--set", "training.epochs=3")
    assert result.code == 130
    assert "holds the best model so far (epoch 1 of 1 that were done)" in result.err
    assert f"emhrnn train --out {run} --resume" in result.err
    cli.ok("explain", run, "good")
    assert "training has not finished" in cli.ok("info", run).out


def test_ctrl_c_while_scoring_writes_no_file(
    cli: Cli, made: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("emhrnn.training.run.predict", interrupt)
    result = cli("predict", run, made / "test.jsonl", "--out", tmp_path / "p.csv")
    assert (result.code, result.err) == (130, f"emhrnn: interrupted; {tmp_path / 'p.csv'} was not written\n")
    assert list(tmp_path.iterdir()) == []


def test_an_internal_error_is_one_line_and_code_1(cli: Cli, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr("emhrnn.api.explain_texts", fail)
    result = cli("explain", run, "good")
    assert result.code == 1
    assert result.err == (
        "emhrnn: internal error, please report it: ZeroDivisionError: of ours (EMHRNN_DEBUG=1 shows where)\n"
    )


def test_real_processes(tmp_path: Path) -> None:
    """What only a process of its own can show: the exit code, a closed pipe, a kill, an encoding."""
    data = write_reviews(tmp_path / "reviews.jsonl", 4000)
    missing = subprocess.run([*EMHRNN, "info", "missing.csv"], capture_output=True, text=True, cwd=tmp_path)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert missing.stderr == "emhrnn: missing.csv does not exist; give a run folder, a prepared corpus or data\n"

    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    (tmp_path / "café.csv").write_text("text,label\nné,1\n", encoding="utf-8")
    shown = subprocess.run([*EMHRNN, "info", "café.csv"], capture_output=True, text=True, cwd=tmp_path, env=ascii_only)
    assert shown.returncode == 0
    assert "n\\xe9" in shown.stdout

    command = [*EMHRNN, "paper", "prepare", data, "--out", tmp_path / "corpus"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not list(tmp_path.glob(".corpus.*")) and process.poll() is None:
            pass
        process.send_signal(signal.SIGTERM)
        process.communicate()
    assert process.returncode in (143, 0)  # 0 if it was faster than we
    assert list(tmp_path.glob(".corpus.*")) == []

    with subprocess.Popen([*EMHRNN, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
