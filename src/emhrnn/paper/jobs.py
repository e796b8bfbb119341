"""Many independent jobs in parallel processes, which can be stopped at any moment and continued later.

folder/NAME.json    the record of a job: its arguments, and its result once it is done, or its error
folder/NAME/        the job's own folder: whatever it keeps to continue from, and log.txt, all that it printed

A job is a call `function(its arguments and places, its folder)` in a process of its own, so that jobs share no state,
no thread pool and no crash. Arguments and results are JSON; nothing is pickled.
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tqdm import tqdm

from emhrnn.cores import environment_of
from emhrnn.errors import CheckpointError, ConfigError, EmhrnnError
from emhrnn.files import locked, write_json

NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+=-,")


@dataclass(frozen=True)
class JobSpec:
    """`name` is the name of a file, too (`job_name`). `arguments` hold what JSON can, and say what the job is. `places`
    are where its files happen to lie: other places do not make it another job, and its record does not name them."""

    name: str
    arguments: dict[str, Any]
    places: dict[str, str | None] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, Any]:
        """What its function is called with."""
        return {**self.arguments, **self.places}


@dataclass(frozen=True)
class Outcome:
    """What became of a job: a result, or an error in one line."""

    name: str
    result: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0

    @property
    def ended(self) -> bool:
        """False where the job has not come to its end."""
        return self.result is not None or self.error is not None


@dataclass(frozen=True)
class HowToRun:
    """`processes`: how many jobs run at a time; each gets the cores divided by that as threads, and a smaller
    OMP_NUM_THREADS is kept. For a `report` nothing is run, and another process may be at it. `say` takes one line for
    each job that ends; None: nothing is said, and no progress is shown on stderr."""

    processes: int = 1
    report: bool = False
    say: Callable[[str], None] | None = None


def job_name(text: str) -> str:
    """The text with every character that a file name should not hold turned into one that it may."""
    name = "".join(c if c in NAME_CHARACTERS else "-" for c in text).strip("-.")
    return name or "job"


def _read_record(folder: Path, name: str) -> dict[str, Any] | None:
    """What is written of a job; None when nothing is, or nothing that can be read."""
    try:
        record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not (isinstance(record, dict) and "state" in record):
        return None
    if "settings" in record["arguments"]:
        from emhrnn.training.compatibility import migrated  # imports torch: not for jobs without settings

        with suppress(CheckpointError, KeyError, TypeError):  # settings that only version 0.1 has
            record["arguments"]["settings"] = migrated(record["arguments"]["settings"])
    return record


def _outcome_of(folder: Path, job: JobSpec, *, failures: bool = False) -> Outcome | None:
    record = _read_record(folder, job.name)
    if record is None or _identity(record["arguments"]) != _identity(job.arguments):
        return None
    if record["state"] == "done":
        return Outcome(job.name, record["result"], None, record["seconds"])
    if record["state"] in ("failed", "died") and failures:
        return Outcome(job.name, None, record["error"], record["seconds"])
    return None


def _write_state(folder: Path, job: JobSpec, state: Literal["begun", "died"], **more: Any) -> None:
    write_json(folder / f"{job.name}.json", {"name": job.name, "arguments": job.arguments, "state": state, **more})


def _check_same(folder: Path, job: JobSpec) -> None:
    record = _read_record(folder, job.name)
    if record is None or record["state"] == "failed":
        return
    before, now = _identity(record["arguments"]), _identity(job.arguments)
    for key in sorted({*before, *now}):
        if before.get(key) != now.get(key):
            state = "done" if record["state"] == "done" else "begun"
            raise ConfigError(
                f"the job {job.name} in {folder} was {state} with {key} = {before.get(key)!r}, not {now.get(key)!r}; "
                f"give another folder, or delete {folder / job.name}.json to do it again"
            )


def _identity(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a job is. A run may change its threads when it is resumed, too; and the checksums of documents tell in which
    language they were read, also where it is detected."""
    aside = {"settings.training.threads"} | ({"settings.data.language"} if "data_sha256" in arguments else set())
    return {name: value for name, value in _flat(arguments).items() if name not in aside}


def _flat(arguments: dict[str, Any]) -> dict[str, Any]:
    """Nested ones by names such as `settings.training.epochs`."""
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, dict) and value:
            flat |= {f"{name}.{key}": one for key, one in _flat(value).items()}
        else:
            flat[name] = value
    return flat


def _check_names(jobs: Sequence[JobSpec]) -> None:
    seen: set[str] = set()
    for name in (job.name for job in jobs):
        if name.lower() in seen:  # some file systems do not distinguish them
            raise ConfigError(f"two jobs have the name {name!r}; give each its own")
        seen.add(name.lower())


GRACE = 30.0  # seconds to end in, once asked to
LOG, PROGRESS, PLACES, LOCK = "log.txt", "progress.json", "places.json", ".lock"
TERMINATED = 143


def report_progress(folder: Path, share: float, what: str) -> None:
    """Called by a job: it has done this share of its work, and is at `what`."""
    write_json(folder / PROGRESS, {"share": share, "what": what})


def main(target: str, record: Path, folder: Path) -> None:
    """The process of one job: call the function `target` (module:name), and write its outcome to `record`."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with locked(folder / LOCK):  # after kill -9 of the parent, the job's last process may still be saving: wait for it
        _run(target, record, folder)


def _run(target: str, record: Path, folder: Path) -> None:
    known: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
    if known["state"] == "done":  # by that last process, while this one waited
        return
    places: dict[str, str | None] = json.loads((folder / PLACES).read_text(encoding="utf-8"))
    began = time.perf_counter()
    outcome: dict[str, Any]
    try:
        module, _, name = target.partition(":")
        result = getattr(importlib.import_module(module), name)({**known["arguments"], **places}, folder)
        json.dumps(result, allow_nan=False)  # raises for what cannot be kept, while there still is a way to tell
        outcome = {"state": "done", "result": result}
    except EmhrnnError as error:
        outcome = {"state": "failed", "error": str(error)}
    except Exception as error:
        traceback.print_exc()
        outcome = {"state": "failed", "error": f"{type(error).__name__}: {error}; see {folder / LOG}"}
    seconds = round(time.perf_counter() - began, 3)
    write_json(record, {"name": known["name"], "arguments": known["arguments"], "seconds": seconds, **outcome})


def _end_with_parent() -> None:
    """Nothing is ever written to stdin: its end is the end of the process that started this one."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(TERMINATED)


POLL = 0.1  # seconds between looks at the processes

Function = Callable[[dict[str, Any], Path], dict[str, Any]]


def run_jobs(function: Function, jobs: Sequence[JobSpec], folder: Path, how: HowToRun) -> list[Outcome]:
    """The outcomes in the order of the jobs; for a report, those that have not ended are among them.

    A job that is done is not done again. One that was stopped, or whose process died, runs again and finds its folder
    as it left it. One that failed is tried again, in an empty folder; its failure stops no other job. A job whose
    arguments differ from those it was started with is refused, because that would throw work away unasked; after a
    failure it may change. Ctrl-C and SIGTERM end the processes, which get time to save where they are. When
    this process is killed, they see that and end, too.

    Args:
        function: a function of a module, which each process imports by its name.

    Raises:
        ConfigError: the names or `processes` cannot be used, or a job has begun with other arguments.
        DataError: `folder` is in use.
    """
    if how.processes < 1:
        raise ConfigError(f"processes = {how.processes}; at least one is needed")
    jobs = [replace(job, arguments=json.loads(json.dumps(job.arguments))) for job in jobs]  # tuples become lists
    _check_names(jobs)
    if how.report:
        return _outcomes(folder, jobs)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, f"{folder} is in use by another process; wait for it, or give another folder"):
        for job in jobs:
            _check_same(folder, job)
        todo = [job for job in jobs if _outcome_of(folder, job) is None]
        if todo:
            _run_all(function, todo, folder, how)
        return _outcomes(folder, jobs)


def _outcomes(folder: Path, jobs: Sequence[JobSpec]) -> list[Outcome]:
    return [_outcome_of(folder, job, failures=True) or Outcome(job.name, None) for job in jobs]


def _run_all(function: Function, todo: Sequence[JobSpec], folder: Path, how: HowToRun) -> None:
    waiting, running = deque(todo), list[_Running]()
    environment, say = environment_of(how.processes), how.say or (lambda _: None)
    done = 0
    bar = tqdm(
        total=len(todo), unit="job", leave=False,
        disable=True if how.say is None else None,  # None: shown on a terminal
        bar_format="{n:.1f} of {total} [{elapsed}, {remaining} left] {desc}",
    )  # fmt: skip
    try:
        with bar:
            while waiting or running:
                while waiting and len(running) < how.processes:
                    running.append(_Running.start(function, waiting.popleft(), folder, environment))
                time.sleep(POLL)
                for ended in [one for one in running if one.process.poll() is not None]:
                    running.remove(ended)
                    done += 1
                    bar.clear()
                    say(_told(ended.end(), f"{done} of {len(todo)}"))
                at = [(one.job.name, *one.progress()) for one in running]
                bar.n = done + sum(share for _, share, _ in at)
                bar.set_description_str("; ".join(f"{name}: {what}" for name, _, what in at))
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


def _begin(job: JobSpec, folder: Path) -> Path:
    """The job's own folder, with what its process needs."""
    own = folder / job.name
    before = _read_record(folder, job.name)
    if before is None or before["state"] == "failed":  # what a failure left could make it fail again
        shutil.rmtree(own, ignore_errors=True)
    own.mkdir(exist_ok=True)
    (own / PROGRESS).unlink(missing_ok=True)
    write_json(own / PLACES, job.places)
    _write_state(folder, job, "begun")
    return own


def _target(function: Function) -> str:
    return f"{function.__module__}:{function.__qualname__}"


@dataclass(eq=False)
class _Running:
    """A job in its process. The process ends when its stdin does, which is when this one dies."""

    job: JobSpec
    folder: Path
    process: "subprocess.Popen[bytes]"
    began: float

    @classmethod
    def start(cls, function: Function, job: JobSpec, folder: Path, environment: Mapping[str, str]) -> "_Running":
        own = _begin(job, folder)
        with (own / LOG).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "emhrnn.paper.jobs", _target(function), str(folder / f"{job.name}.json"), own],
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
        outcome = _outcome_of(self.folder, self.job, failures=True)
        if outcome is not None:
            return outcome
        code, log = self.process.returncode, self.folder / self.job.name / LOG
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        hint = " (memory may have run out; use fewer processes)" if code == -signal.SIGKILL else ""
        error = f"its process {how}{hint}; see {log}"
        seconds = time.monotonic() - self.began
        _write_state(self.folder, self.job, "died", error=error, seconds=seconds)
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


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
