"""Many independent jobs in parallel processes, which can be stopped at any moment and gone on with later.

folder/NAME.json    what became of a job: its arguments, and its result once it is done, or its error
folder/NAME/        the job's own folder: whatever it keeps to go on from, and log.txt, all that it printed

A job is a call `function(its arguments and places, its folder)` in a process of its own, so that jobs share no state,
no thread pool and no crash. Arguments and results are JSON; nothing is pickled.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from emhrnn.cores import environment_of
from emhrnn.errors import ConfigError
from emhrnn.files import write_json
from emhrnn.paper.job_display import Display
from emhrnn.paper.job_process import GRACE, LOG, PLACES, PROGRESS
from emhrnn.paper.job_records import (
    Job,
    Outcome,
    as_json,
    check_names,
    check_same,
    outcome_of,
    read_record,
    write_state,
)

POLL = 0.1  # seconds between looks at the processes

Function = Callable[[dict[str, Any], Path], dict[str, Any]]


def run_jobs(
    function: Function,
    jobs: Sequence[Job],
    folder: Path,
    *,
    processes: int = 1,
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> list[Outcome]:
    """The outcomes in the order of the jobs, at most `processes` of which run at a time.

    A job that is done is not done again. One that was stopped, or whose process died, runs again and finds its folder
    as it left it. One that failed is tried again, in an empty folder; its failure stops no other job. A job whose
    arguments differ from those it was started with is refused, because that would throw work away unasked; after a
    failure it may change. Ctrl-C and SIGTERM end the processes, which get time to save where they are. When
    this process is killed, they see that and end, too.

    Args:
        function: a function of a module, which each process imports by its name.
        processes: each gets the cores divided by `processes` as threads; a smaller OMP_NUM_THREADS is kept.
        progress: a display on stderr, if that is a terminal; what jobs are at, they say by `report_progress`.
        say: takes one line for each job that ends.

    Raises:
        ConfigError: the names, the arguments or `processes` cannot be used, or `folder` is in use.
    """
    if processes < 1:
        raise ConfigError(f"processes = {processes}; at least one is needed")
    jobs = [replace(job, arguments=as_json(job)) for job in jobs]
    check_names(jobs)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        for job in jobs:
            check_same(folder, job)
        todo = [job for job in jobs if outcome_of(folder, job) is None]
        if todo:
            _run_all(function, todo, folder, processes, progress, say)
        outcomes = [outcome_of(folder, job, failures=True) for job in jobs]
    assert all(outcome is not None for outcome in outcomes)
    return [outcome for outcome in outcomes if outcome is not None]


def _run_all(
    function: Function,
    todo: Sequence[Job],
    folder: Path,
    processes: int,
    progress: bool,
    say: Callable[[str], None],
) -> None:
    waiting, running = deque(todo), list[_Running]()
    environment = environment_of(processes)
    done = 0
    try:
        with Display(len(todo), show=progress) as display:
            while waiting or running:
                while waiting and len(running) < processes:
                    running.append(_Running.start(function, waiting.popleft(), folder, environment))
                time.sleep(POLL)
                for ended in [one for one in running if one.process.poll() is not None]:
                    running.remove(ended)
                    done += 1
                    say(_told(ended.end(), f"{done} of {len(todo)}"))
                display.show(done, {one.job.name: one.progress() for one in running})
    except KeyboardInterrupt:
        say(f"stopping {len(running)} jobs, which save where they are; Ctrl-C again ends them at once")
        _stop(running)
        raise KeyboardInterrupt(
            f"{folder} keeps what is done ({done} of {len(todo)} jobs); the same command goes on"
        ) from None
    finally:
        _stop(running)


def _told(outcome: Outcome, count: str) -> str:
    became = "done" if outcome.error is None else "FAILED"
    told = f"[{count}] {became} {outcome.name} ({outcome.seconds:.0f} s)"
    return told if outcome.error is None else f"{told}: {outcome.error}"


@dataclass(eq=False)
class _Running:
    """A job in its process. The process ends when its stdin does, which is when this one dies."""

    job: Job
    folder: Path
    process: "subprocess.Popen[bytes]"
    began: float

    @classmethod
    def start(cls, function: Function, job: Job, folder: Path, environment: Mapping[str, str]) -> "_Running":
        own = folder / job.name
        before = read_record(folder, job.name)
        if before is None or before["state"] == "failed":  # what a failure left could make it fail again
            shutil.rmtree(own, ignore_errors=True)
        own.mkdir(exist_ok=True)
        (own / PROGRESS).unlink(missing_ok=True)
        write_json(own / PLACES, job.places)
        write_state(folder, job, "begun")
        target = f"{function.__module__}:{function.__qualname__}"
        with (own / LOG).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "emhrnn.paper.job_process", target, str(folder / f"{job.name}.json"), own],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=environment,
                process_group=0,  # Ctrl-C in a terminal goes to us alone, and we tell them
            )
        return cls(job, folder, process, time.monotonic())

    def progress(self) -> tuple[float, str]:
        """The share that is done, and what is being done, as far as the job says so."""
        try:
            said = json.loads((self.folder / self.job.name / PROGRESS).read_text(encoding="utf-8"))
            return float(said["share"]), str(said["what"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0.0, ""

    def end(self) -> Outcome:
        """Its outcome, also when it crashed without a word."""
        self.close()
        outcome = outcome_of(self.folder, self.job, failures=True)
        if outcome is not None:
            return outcome
        code, log = self.process.returncode, self.folder / self.job.name / LOG
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        hint = " (memory may have run out; use fewer processes)" if code == -signal.SIGKILL else ""
        error = f"its process {how}{hint}; see {log}"
        seconds = time.monotonic() - self.began
        write_state(self.folder, self.job, "died", error=error, seconds=seconds)
        return Outcome(self.job.name, None, error, seconds)

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()


def _stop(running: list[_Running]) -> None:
    """Ask all to end, wait, and end those that do not."""
    try:
        for one in running:
            one.process.terminate()
        deadline = time.monotonic() + GRACE
        for one in running:
            one.process.wait(max(0.0, deadline - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    for one in running:
        one.process.kill()
        one.process.wait()
        one.close()
    running.clear()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One user of the folder at a time, where the system has file locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(f"{folder} is in use by another process; wait for it, or give another folder") from None
        yield
