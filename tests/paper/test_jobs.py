"""Jobs run once, survive each other's failures, and go on after any kind of stop."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emhrnn.errors import ConfigError, DataError
from emhrnn.paper.jobs import HowToRun, JobSpec, _run, job_name, run_jobs
from tests.paper.job_functions import fragile, half_done, slow_count, square

ONE, TWO = HowToRun(), HowToRun(processes=2)


def test_another_setting_is_named_alone(tmp_path: Path) -> None:
    settings = {"training": {"epochs": 1, "seed": 0}, "em": {}}
    run_jobs(square, [JobSpec("a", {"x": 2, "settings": settings})], tmp_path, ONE)
    other = {**settings, "training": {"epochs": 2, "seed": 0}}
    with pytest.raises(ConfigError, match=r"was done with settings\.training\.epochs = 1, not 2; give another folder"):
        run_jobs(square, [JobSpec("a", {"x": 2, "settings": other})], tmp_path, ONE)


def test_results_come_in_the_order_of_the_jobs_and_are_kept(tmp_path: Path) -> None:
    jobs = [JobSpec(f"x={x}", {"x": x}) for x in (3, 1, 2)]
    said: list[str] = []
    outcomes = run_jobs(square, jobs, tmp_path, HowToRun(2, say=said.append))
    assert [outcome.result and outcome.result["square"] for outcome in outcomes] == [9, 1, 4]
    assert len(said) == 3
    record = json.loads((tmp_path / "x=3.json").read_text())
    assert (record["state"], record["arguments"], record["result"]["square"]) == ("done", {"x": 3}, 9)
    assert (tmp_path / "x=3" / "log.txt").read_text() == "squaring\n"
    again = run_jobs(square, jobs, tmp_path, HowToRun(2, say=said.append))
    assert again == outcomes
    assert len(said) == 3  # nothing was done


def test_threads_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for given, threads in (("", "4"), ("3", "3"), ("99", "4")):
        monkeypatch.setenv("OMP_NUM_THREADS", given)
        (outcome,) = run_jobs(square, [JobSpec("a", {"x": 2})], tmp_path / f"given{given}", TWO)
        assert outcome.result == {"square": 4, "threads": threads}


def test_failures_stop_no_other_job_and_are_tried_again(tmp_path: Path) -> None:
    jobs = [JobSpec(how, {"how": how}) for how in ("input", "bug", "crash", "result", "none")]
    errors = {o.name: o.error for o in run_jobs(fragile, jobs, tmp_path, TWO)}
    assert errors["input"] == "the soup is cold; warm it up"
    assert errors["bug"] == f"ZeroDivisionError: of ours; see {tmp_path / 'bug' / 'log.txt'}"
    assert "Traceback" in (tmp_path / "bug" / "log.txt").read_text()
    assert (errors["crash"] or "").startswith("its process was killed by SIGKILL (memory may have run out;")
    assert (errors["result"] or "").startswith("ValueError: Out of range float")
    assert errors["none"] is None
    (tmp_path / "repaired").touch()
    outcomes = run_jobs(fragile, jobs, tmp_path, TWO)
    assert [(o.error, o.result) for o in outcomes] == [(None, {"how": job.name}) for job in jobs]


def test_other_arguments_are_refused_but_after_a_failure(tmp_path: Path) -> None:
    run_jobs(square, [JobSpec("a", {"x": 2})], tmp_path, ONE)
    with pytest.raises(
        ConfigError, match=r"the job a in .* was done with x = 2, not 3; give another folder, or delete"
    ):
        run_jobs(square, [JobSpec("a", {"x": 3})], tmp_path, ONE)
    assert run_jobs(square, [JobSpec("b", {"x": "no"})], tmp_path, ONE)[0].error is not None
    assert run_jobs(square, [JobSpec("b", {"x": 3})], tmp_path, ONE)[0].error is None


def test_names_that_differ_in_case_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="two jobs have the name 'A'"):
        run_jobs(square, [JobSpec("a", {}), JobSpec("A", {})], tmp_path, ONE)


def test_no_process_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="processes = 0; at least one is needed"):
        run_jobs(square, [], tmp_path, HowToRun(0))


def test_names_for_files() -> None:
    assert job_name("yelp em-hrnn[em.blocks=5] 0") == "yelp-em-hrnn-em.blocks=5--0"
    assert job_name("../..") == "job"


JOBS = [JobSpec(name, {"held": name in "cd"}) for name in "abcd"]
RUN = """
import sys
from pathlib import Path
from emhrnn.paper.jobs import HowToRun, run_jobs
from tests.paper.job_functions import slow_count
from tests.paper.test_jobs import JOBS
run_jobs(slow_count, JOBS, Path(sys.argv[1]), HowToRun(2))
"""
LIMIT = 300  # seconds, for a machine that is busy; nothing here waits longer than it must


def started(folder: Path) -> "subprocess.Popen[bytes]":
    """A process that has done the jobs a and b, and is held in the middle of c and d."""
    (folder / "hold").touch()
    process = subprocess.Popen([sys.executable, "-c", RUN, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: all((folder / name / "count").exists() for name in "cd"))
    return process


def wait_for(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_in_the_middle_and_gone_on_with(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert process.returncode != 0
    pids = [int(pid) for name in "abcd" for pid in (tmp_path / name / "pids").read_text().split()]
    wait_for(lambda: not any(alive(pid) for pid in pids))  # no child outlives its parent
    assert [outcome.ended for outcome in run_jobs(slow_count, JOBS, tmp_path, HowToRun(report=True))] == [
        True,
        True,
        False,
        False,
    ]
    (tmp_path / "hold").unlink()
    outcomes = run_jobs(slow_count, JOBS, tmp_path, TWO)
    assert [outcome.result for outcome in outcomes] == [{"count": 4, "starts": n} for n in (1, 1, 2, 2)]


def test_a_job_that_its_last_process_finished_meanwhile_is_not_run_again(tmp_path: Path) -> None:
    run_jobs(square, [JobSpec("a", {"x": 2})], tmp_path, ONE)
    before = (tmp_path / "a.json").read_text()
    _run("tests.paper.job_functions:fragile", tmp_path / "a.json", tmp_path / "a")
    assert (tmp_path / "a.json").read_text() == before


def test_a_folder_has_one_user_at_a_time(tmp_path: Path) -> None:
    process = started(tmp_path)
    with pytest.raises(DataError, match="is in use by another process"):
        run_jobs(slow_count, [], tmp_path, ONE)
    process.terminate()
    process.communicate(timeout=LIMIT)


class Terminal(io.StringIO):
    def __init__(self, shown: Path) -> None:
        super().__init__()
        self.shown = shown

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "0.5 of 1 [" in text and "a: epoch 1 of 2" in text:
            self.shown.touch()
        return super().write(text)


def test_a_terminal_shows_what_the_jobs_are_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(tmp_path / "shown"))
    (outcome,) = run_jobs(half_done, [JobSpec("a", {})], tmp_path, HowToRun(say=lambda _: None))
    assert outcome.result == {"shown": True}
