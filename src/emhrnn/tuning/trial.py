"""One trial: train with the settings it was given, tell every epoch, and stop when it is hopeless or time is up."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import optuna
from optuna.trial import Trial, TrialState

from emhrnn.errors import TrainingError
from emhrnn.evaluation.scores import METRICS
from emhrnn.training.config import Config
from emhrnn.training.fit import fit
from emhrnn.training.history import Epoch
from emhrnn.training.loop import Step
from emhrnn.tuning.material import Material


class TimeIsUpError(Exception):
    """Stops training from within; never seen outside."""


class HopelessError(Exception):
    """The same, for a trial that is worse than most were at its age."""


@dataclass(eq=False)
class Watch:
    """Follows the training of a trial. `value` is that of its best epoch so far, larger is better."""

    trial: Trial
    config: Config
    deadline: float  # seconds since 1970
    prune: bool
    show: Callable[[], None]
    value: float | None = None
    epochs: int = 0
    _began: float = field(default_factory=time.time)

    def on_epoch(self, epoch: Epoch) -> None:
        metric = self.config.training.metric
        value = METRICS[metric] * epoch.valid[metric]
        if epoch.best or self.value is None:
            self.value = value
        self.epochs = epoch.epoch + 1
        self.trial.report(value, epoch.epoch)
        self.trial.set_user_attr("epochs", self.epochs)
        self.trial.set_user_attr("seconds", time.time() - self._began)
        self.show()
        last = self.epochs == self.config.training.epochs or epoch.phase == "fit"
        if not last and time.time() > self.deadline:
            raise TimeIsUpError
        if not last and self.prune and self.trial.should_prune():
            raise HopelessError

    def on_step(self, step: Step) -> None:
        self.show()
        if not step.ends_epoch and time.time() > self.deadline:
            raise TimeIsUpError


def run_trial(study: optuna.Study, watch: Watch, material: Material, *, whole: bool) -> bool:
    """Train, and tell the study how it ended. False when it is to be tried again: it was cut before its first epoch
    ended or, where a trial must be `whole`, at any time."""
    trial = watch.trial
    try:
        train, valid = material.corpora(watch.config)
        run = material.new_run(watch.config)
        fit(run, train, valid, progress=False, on_epoch=watch.on_epoch, on_step=watch.on_step)
    except TimeIsUpError:
        trial.set_user_attr("note", "cut at the time limit")
        if watch.value is None or whole:
            study.tell(trial, state=TrialState.FAIL)
            return False
    except HopelessError:
        study.tell(trial, state=TrialState.PRUNED)
        return True
    except TrainingError as error:  # such as a loss that is not a number: worse than any score
        trial.set_user_attr("note", str(error).partition(";")[0])
        study.tell(trial, state=TrialState.PRUNED)
        return True
    study.tell(trial, watch.value)
    return True
