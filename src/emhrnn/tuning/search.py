"""The search: ask for a trial, run it, tell the result, until time or trials run out. Any number of processes do so on
one study; every trial of a process that died is noticed by the others and tried again."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from optuna.trial import FrozenTrial, Trial, TrialState

from emhrnn.training.config import Config
from emhrnn.tuning.material import Material
from emhrnn.tuning.place import Place
from emhrnn.tuning.trial import Watch, run_trial
from emhrnn.tuning.varying import Varied, value_of, with_values

RETRIES = 2  # of a trial whose process died: it may be the trial that killed it
RANDOM_TRIALS = 6  # before the sampler builds on what it has seen
STARTED = (TrialState.RUNNING, TrialState.COMPLETE, TrialState.PRUNED)


@dataclass(frozen=True)
class Plan:
    """What a process needs to take part."""

    out: Path
    config: Config
    space: tuple[Varied, ...]
    grid: bool  # every value of the space's only setting, whole, instead of a search
    trials: int | None
    deadline: float  # seconds since 1970
    command: str  # that asked for it

    @property
    def limit(self) -> int | None:
        return len(self.space[0].values) if self.grid else self.trials


class Search:
    def __init__(self, plan: Plan, place: Place) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.plan, self.place = plan, place
        pruner = optuna.pruners.NopPruner() if plan.grid else optuna.pruners.MedianPruner(4, 1)
        self.study = optuna.create_study(
            storage=place.storage(), study_name="emhrnn", direction="maximize", pruner=pruner, load_if_exists=True
        )

    def begin(self) -> None:
        """Put the first trials into an empty study: the settings as they are, or the whole grid. When locked."""
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

    def work(self, material: Material, show: Callable[[], None], done: Callable[[int], None]) -> None:
        """Run trials until the plan says stop. `done` is told each trial that has ended."""
        while time.time() < self.plan.deadline:
            trial = self._ask()
            if trial is None:
                return
            try:
                config = with_values(self.plan.config, {v.name: v.suggest(trial) for v in self.plan.space})
                watch = Watch(trial, config, self.plan.deadline, prune=not self.plan.grid, show=show)
                if not run_trial(self.study, watch, material, whole=self.plan.grid):
                    self._again(self.study.trials[trial.number])
            except BaseException:  # Ctrl-C too: whoever goes on begins with this one
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
            # A sampler of its own for each trial, keyed by its number: no two processes draw the same values, and the
            # search goes on after a stop as it would have without.
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
        if tried <= RETRIES or trial.user_attrs.get("note"):  # to be cut by the clock is not its fault
            values = trial.params or trial.system_attrs.get("fixed_params", {})
            self.study.enqueue_trial(values, user_attrs={"tried": tried})


def best_of(study: optuna.Study) -> FrozenTrial | None:
    """The trial of the best value; of several, the first."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(complete, key=lambda trial: (trial.value, -trial.number), default=None)
