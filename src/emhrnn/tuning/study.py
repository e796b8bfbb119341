"""The study that several processes share: its folder, and the search that each of them runs on it.

study.json     what is searched: data, settings and space, so that no process joins with others
journal.log    Optuna's journal: every trial, by every process
corpus/        the data as word ids, prepared once for all trials
workers/       a lock per process, which the system releases even after kill -9
best.toml, trials.csv   the results, written again after every trial

A process asks for a trial, runs it and tells the result, until time or trials run out. If it dies, the others notice
and try its trial again.
"""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from filelock import FileLock, Timeout
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState

from emhrnn.errors import CheckpointError, ConfigError, DataError
from emhrnn.files import write_json
from emhrnn.training.config import Config, with_settings
from emhrnn.tuning.space import Varied, value_of
from emhrnn.tuning.trial import StudyData, Watch, run_trial

FORMAT = 1
DESCRIPTION, JOURNAL, BEST, TRIALS = "study.json", "journal.log", "best.toml", "trials.csv"
RETRIES = 2  # of a trial whose process died: the trial may have killed it
RANDOM_TRIALS = 6  # before the sampler uses earlier results
STARTED = (TrialState.RUNNING, TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class SearchPlan:
    """What a process needs to take part in a study."""

    out: Path
    config: Config
    space: tuple[Varied, ...]
    grid: bool  # run every value of the only setting of the space, without pruning, instead of a search
    trials: int | None
    deadline: float  # seconds since 1970
    command: str  # the user's

    @property
    def limit(self) -> int | None:
        """Trials that the study may have."""
        return len(self.space[0].values) if self.grid else self.trials


class StudyFolder:
    """The folder of a study, entered by one process. Others recognise by its lock that it lives.

    Raises:
        DataError: the folder is a file, or holds something else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if folder.exists() and not folder.is_dir():
            raise DataError(f"{folder} is a file, the study is to be a folder; give another name")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / "workers").is_dir():
            raise DataError(f"{folder} is not empty and holds no study; give another folder with --out")
        (folder / "workers").mkdir(parents=True, exist_ok=True)
        self.token = secrets.token_hex(8)
        self._alive = self._lock(self.token)
        self._alive.acquire()

    def locked(self) -> FileLock:
        """A context that only one process at a time can enter."""
        return self._lock("study.lock")

    def lives(self, token: str | None) -> bool:
        """Whether the process with this token is running."""
        if token == self.token:
            return True
        if token is None or not (self.folder / "workers" / token).exists():
            return False
        try:
            with self._lock(token).acquire(timeout=0):
                return False
        except Timeout:
            return True

    def leave(self) -> None:
        """End this process's part. A study without any trial is removed."""
        (self.folder / "workers" / self.token).unlink(missing_ok=True)
        self._alive.release()
        others = [path for path in (self.folder / "workers").iterdir() if path.suffix != ".lock"]
        if not others and not (self.folder / JOURNAL).exists():
            shutil.rmtree(self.folder)

    def join(self, description: dict[str, Any]) -> None:
        """Create the study, or check that it is this one. Call it when locked.

        Raises:
            ConfigError, DataError: the folder holds a study of other settings or data.
        """
        path = self.folder / DESCRIPTION
        if not path.exists():
            write_json(path, {"format": FORMAT, **description})
            return
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
            version = there["format"]
        except (OSError, ValueError, KeyError, TypeError):
            raise CheckpointError(f"{path}: corrupt; give another folder with --out") from None
        if version != FORMAT:
            raise CheckpointError(f"{path}: format {version}, this emhrnn reads format {FORMAT}; give another --out")
        given = json.loads(json.dumps(description))
        for what in ("data", "validation data", "vectors"):
            if there.get(what) != given[what]:
                raise DataError(
                    f"{self.folder} holds a study of other {what}: {_shown(there.get(what))}, given "
                    f"{_shown(given[what])}; give the same, or another folder with --out"
                )
        for what in ("settings", "space"):
            _check_same(self.folder, what, there.get(what) or {}, given[what])

    def storage(self) -> JournalStorage:
        """Optuna's storage of the study. A half line that a kill left at the end of the journal is removed."""
        path = self.folder / JOURNAL
        lock = _JournalLock(self._lock("journal.lock"))
        with lock.lock:
            _drop_half_line(path)
        return JournalStorage(JournalFileBackend(str(path), lock_obj=lock))

    def _lock(self, name: str) -> FileLock:
        return FileLock(self.folder / "workers" / name)


class _JournalLock(JournalFileOpenLock):
    """Optuna's own locks outlive a killed process; this one does not."""

    def __init__(self, lock: FileLock) -> None:
        self.lock = lock

    def acquire(self) -> bool:
        self.lock.acquire()
        return True

    def release(self) -> None:
        self.lock.release()


def _drop_half_line(journal: Path) -> None:
    if not journal.exists():
        return
    content = journal.read_bytes()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        with journal.open("r+b") as file:
            file.truncate(whole)


class Search:
    """The part of one process in a study."""

    def __init__(self, plan: SearchPlan, place: StudyFolder) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.plan, self.place = plan, place
        pruner = optuna.pruners.NopPruner() if plan.grid else optuna.pruners.MedianPruner(4, 1)
        self.study = optuna.create_study(
            storage=place.storage(), study_name="emhrnn", direction="maximize", pruner=pruner, load_if_exists=True
        )

    def begin(self) -> None:
        """Queue the first trials of an empty study: the settings as given, or the whole grid. Call it when locked."""
        self._reap()
        if self.study.get_trials(deepcopy=False):
            return
        if self.plan.grid:
            (varied,) = self.plan.space
            for value in varied.values:
                self.study.enqueue_trial({varied.name: value})
            return
        now = {varied.name: value_of(self.plan.config, varied.name) for varied in self.plan.space}
        self.study.enqueue_trial({v.name: now[v.name] for v in self.plan.space if v.holds(now[v.name])})

    def work(self, data: StudyData, show: Callable[[], None], done: Callable[[int], None]) -> None:
        """Run trials until the plan ends. `done` gets the number of each trial that has ended."""
        while time.time() < self.plan.deadline:
            trial = self._ask()
            if trial is None:
                return
            try:
                config = with_settings(self.plan.config, {v.name: v.suggest(trial) for v in self.plan.space})
                watch = Watch(trial, config, self.plan.deadline, prune=not self.plan.grid, show=show)
                if not run_trial(self.study, watch, data, whole=self.plan.grid):
                    self._again(self.study.trials[trial.number])
            except BaseException:  # also Ctrl-C: whoever resumes begins with this trial
                self._give_up(trial.number)
                raise
            done(trial.number)

    def missing(self) -> int:
        """Values of a grid that have no result yet."""
        if not self.plan.grid:
            return 0
        done = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        return len(self.plan.space[0].values) - len(done)

    def _ask(self) -> Trial | None:
        """The next trial, or None when there are enough."""
        with self.place.locked():
            self._reap()
            trials = self.study.get_trials(deepcopy=False)
            started = sum(trial.state in STARTED for trial in trials)
            if self.plan.limit is not None and started >= self.plan.limit:
                return None
            # Each trial has its own sampler, seeded by its number: no two processes draw the same values, and a resumed
            # search draws what it would have drawn without the stop.
            seed = np.random.SeedSequence([self.plan.config.training.seed, len(trials)]).generate_state(1)[0]
            self.study.sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=int(seed))
            trial = self.study.ask()
            trial.set_user_attr("worker", self.place.token)
            trial.set_user_attr("process", os.getpid())
            return trial

    def _reap(self) -> None:
        for trial in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if not self.place.lives(trial.user_attrs.get("worker")):
                self.study.tell(trial.number, state=TrialState.FAIL)
                self._again(trial)

    def _give_up(self, number: int) -> None:
        with self.place.locked():
            trial = self.study.trials[number]
            if trial.state == TrialState.RUNNING:
                self.study.tell(number, state=TrialState.FAIL)
                self._again(trial)

    def _again(self, trial: FrozenTrial) -> None:
        tried = int(trial.user_attrs.get("tried", 0)) + 1
        if tried <= RETRIES or trial.user_attrs.get("note"):  # cut by the time limit
            values = trial.params or trial.system_attrs.get("fixed_params", {})
            self.study.enqueue_trial(values, user_attrs={"tried": tried})


def best_of(study: optuna.Study) -> FrozenTrial | None:
    """The trial of the best value; of several, the first."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(complete, key=lambda trial: (trial.value, -trial.number), default=None)


def _check_same(folder: Path, what: str, there: dict[str, Any], given: dict[str, Any]) -> None:
    for name in [*given, *there]:
        if there.get(name) != given.get(name):
            raise ConfigError(
                f"{folder} holds a study of another {what.rstrip('s')}: {name} is {_shown(there.get(name))} there, "
                f"{_shown(given.get(name))} here; give the same, or another folder with --out"
            )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value.get('source')} ({str(value.get('sha256'))[:8]}{_read_as(value.get('read_as'))})"
    return "none" if value is None else repr(value)


def _read_as(said: dict[str, str] | None) -> str:
    return "".join(f", {what} {value}" for what, value in (said or {}).items())
