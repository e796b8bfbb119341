"""`tune`: search for settings that do well on the validation data. The same call resumes a study.

study.json     what is searched: data, settings and space, so that no other call resumes it
journal.log    Optuna's journal: every trial
corpus/        the data as word ids, prepared once for all trials
best.toml, trials.csv   the results, written again after every trial
"""

import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState

from emhrnn.corpus import Corpus, TextSettings
from emhrnn.errors import CheckpointError, ConfigError, DataError, TrainingError
from emhrnn.evaluation.scores import METRICS
from emhrnn.files import from_json, locked, named, write_json
from emhrnn.text import Vectors, read_vectors
from emhrnn.training.config import Config, DataConfig, with_settings
from emhrnn.training.data import Named, checksum, prepared, text_settings, untrained
from emhrnn.training.progress import Epoch, Step, TrainingContext
from emhrnn.training.train import check_settings, corpora_of, fit
from emhrnn.tuning.report import Tuned, save, trial_line, tuned
from emhrnn.tuning.space import assignments_of, distributions, holds, space_of, value_of

FORMAT = 1
DESCRIPTION, JOURNAL, LOCK = "study.json", "journal.log", "study.lock"
RETRIES = 2  # of a trial whose process died: the trial may have killed it
RANDOM_TRIALS = 6  # before the sampler uses earlier results
STARTED = (TrialState.COMPLETE, TrialState.PRUNED)


def tune(
    data: Named,
    out: Path,
    *,
    config: Config,
    valid: Named | None = None,
    vectors: Path | None = None,
    vary: Sequence[str] = (),
    only: bool = False,
    fixed: Sequence[str] = (),
    minutes: float = 10.0,
    trials: int | None = None,
    progress: bool = True,
    command: str = "emhrnn tune",
) -> Tuned:
    """Search, and leave the study, best.toml and trials.csv at `out`.

    Args:
        vary: ranges in the notation of `--vary`, beside the model's own; with `only`, instead of them. If a list of
            values is all that varies, every value is run once, whole.
        fixed: names of settings that are not to vary.
        minutes: time limit, within a trial too.
        trials: limit for the whole study.

    Raises:
        ConfigError, DataError: a setting, a range or the data cannot be used, or `out` holds another study.
        TrainingError: no trial came to a score.
    """
    deadline = time.time() + 60 * minutes
    config.model.check_files()
    own = {} if only else {name: text for name, text in space_of(config).items() if name not in fixed}
    notation = {**own, **assignments_of(vary)}
    space = distributions(notation, config.model.name)
    if not space:
        raise ConfigError("nothing varies; give a setting with --vary, e.g. training.learning_rate=0.001:0.01:log")
    with _study_folder(out):
        _check_description(out, _description(data, valid, vectors, config, {name: notation[name] for name in space}))
        table = None if vectors is None else read_vectors(vectors)
        check_settings(config, table)
        material = _prepared_once(out, data, valid, config, table, progress=progress)
        search = Search(out, config, space, trials, deadline)
        if search.study.get_trials(deepcopy=False):  # a call that was killed may not have come to it
            save(search.study, out, config, command)
        for trial in search.run(material):
            save(search.study, out, config, command)
            if progress:
                sys.stderr.write(trial_line(search.study, trial, config) + "\n")
    result = tuned(search.study, config, search.missing())
    if result is None:
        raise TrainingError(_nothing(search.study, out))
    return result


@contextmanager
def _study_folder(out: Path) -> Iterator[None]:
    """The folder of a study, for one process at a time. A study without any trial is removed at the end.

    Raises:
        DataError: the folder is a file, holds something else, or another process searches there.
    """
    if out.exists() and not out.is_dir():
        raise DataError(f"{out} is a file, the study is to be a folder; give another name")
    if out.is_dir() and any(out.iterdir()) and not ((out / DESCRIPTION).exists() or (out / LOCK).exists()):
        raise DataError(f"{out} is not empty and holds no study; give another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    try:
        taken = f"{{holder}} is searching in {out}; wait for it, or give another folder with --out"
        with locked(out / LOCK, taken), named(out):  # the journal is optuna's, whose errors name no file
            yield
    finally:
        if not (out / JOURNAL).exists() and not (out / LOCK).exists():
            shutil.rmtree(out)


def _description(
    data: Named, valid: Named | None, vectors: Path | None, config: Config, space: dict[str, str]
) -> dict[str, Any]:
    settings = config.model_dump(exclude={"training": {"threads"}})
    return {
        "data": _described(data),
        "validation data": None if valid is None else _described(valid),
        "vectors": None if vectors is None else _described(Named(path=vectors)),
        "settings": {f"{s}.{name}": value for s, values in settings.items() for name, value in values.items()},
        "space": space,
    }


def _described(named: Named) -> dict[str, Any]:
    if not named.path.exists():
        raise DataError(f"{named.path} does not exist; check the name")
    return {"source": named.path.name, "sha256": checksum(named.path), "read_as": named.read_as()}


def _check_description(out: Path, description: dict[str, Any]) -> None:
    """Create the study, or raise an error where the folder holds a study of other settings or data."""
    path = out / DESCRIPTION
    if not path.exists():
        write_json(path, {"format": FORMAT, **description})
        return
    try:
        there = from_json(path.read_text(encoding="utf-8"))
        version = there["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise CheckpointError(f"{path}: corrupt; give another folder with --out") from None
    if version != FORMAT:
        raise CheckpointError(f"{path}: format {version}, this emhrnn reads format {FORMAT}; give another --out")
    given = json.loads(json.dumps(description))
    for what in ("data", "validation data", "vectors"):
        if there.get(what) != given[what]:
            raise DataError(
                f"{out} holds a study of other {what}: {_shown(there.get(what))}, given {_shown(given[what])}; give "
                "the same, or another folder with --out"
            )
    for what in ("settings", "space"):
        before, now = there.get(what) or {}, given[what]
        for name in [*now, *before]:
            if before.get(name) != now.get(name):
                raise ConfigError(
                    f"{out} holds a study of another {what.rstrip('s')}: {name} is {_shown(before.get(name))} there, "
                    f"{_shown(now.get(name))} here; give the same, or another folder with --out"
                )


def _shown(value: Any) -> str:
    if not isinstance(value, dict):
        return "none" if value is None else repr(value)
    read_as = "".join(f", {what} {said}" for what, said in (value.get("read_as") or {}).items())
    return f"{value.get('source')} ({str(value.get('sha256'))[:8]}{read_as})"


@dataclass(eq=False)
class Material:
    """What all trials share: the prepared data with all its words, and the word vectors."""

    out: Path
    train: Named
    valid: Named | None
    vectors: Vectors | None
    _ready: dict[DataConfig, tuple[Corpus, Corpus]] = field(default_factory=dict)

    def corpora(self, config: Config) -> tuple[Corpus, Corpus]:
        """The training and validation corpora that `emhrnn train` would use with these settings."""
        if config.data not in self._ready:
            _, *corpora = corpora_of(self.train, self.valid, self.out, config, self.vectors, progress=False)
            self._ready[config.data] = corpora[0], corpora[1]
        return self._ready[config.data]


def _prepared_once(
    out: Path, data: Named, valid: Named | None, config: Config, vectors: Vectors | None, *, progress: bool
) -> Material:
    """The data of a study, prepared in its folder by the first call.

    Raises:
        DataError: the data cannot be used for training or validation.
    """
    train = _once(data, out / "corpus" / "train", text_settings(config.data), progress=progress)
    held_out = None
    if valid is not None:
        like = Corpus.open(train.path, verify=False)
        held_out = _once(valid, out / "corpus" / "valid", like.text, like, progress=progress)
    material = Material(out, train, held_out, vectors)
    material.corpora(config)  # raises before the first trial
    return material


def _once(data: Named, place: Path, text: TextSettings, like: Corpus | None = None, *, progress: bool) -> Named:
    if prepared(data) is not None:
        return data
    if not place.exists():
        names: dict[str, Any] = {}
        if like is not None:
            names = {"classes": like.classes, "users": like.users, "products": like.products}
            names["multi_label"] = like.multi_label
        corpus = data.prepare(place, text=text, progress=progress, **names)
        if not corpus.labelled:
            raise DataError(f"{data.path} has no labels; a search needs a label for every document")
    return Named(path=place)


class Search:
    """The trials of a study, one after the other."""

    def __init__(
        self, out: Path, config: Config, space: dict[str, BaseDistribution], trials: int | None, deadline: float
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.config, self.space, self.deadline = config, space, deadline
        (first, *others) = space.values()
        self.grid = first.choices if isinstance(first, CategoricalDistribution) and not others else ()
        self.limit = len(self.grid) or trials
        _drop_half_line(out / JOURNAL)
        self.study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(out / JOURNAL), lock_obj=_NoLock())),
            study_name="emhrnn",
            direction="maximize",
            pruner=optuna.pruners.NopPruner() if self.grid else optuna.pruners.MedianPruner(4, 1),
            load_if_exists=True,
        )

    def run(self, material: Material) -> Iterator[FrozenTrial]:
        """Run trials until time or trials run out, and yield each that has ended."""
        self._begin()
        while time.time() < self.deadline:
            trials = self.study.get_trials(deepcopy=False)
            if self.limit is not None and sum(trial.state in STARTED for trial in trials) >= self.limit:
                return
            # Each trial has its own sampler, seeded by its number: a resumed search draws what it would have drawn
            # without the stop.
            seed = np.random.SeedSequence([self.config.training.seed, len(trials)]).generate_state(1)[0]
            self.study.sampler = optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=int(seed))
            trial = self.study.ask(self.space)
            self._run_trial(trial, material)
            yield self.study.trials[trial.number]

    def missing(self) -> int:
        """Values of a grid that have no result yet."""
        done = self.study.get_trials(deepcopy=False, states=STARTED)
        return max(len(self.grid) - len(done), 0)

    def _begin(self) -> None:
        """Queue the first trials of an empty study: the settings as given, or all values of the only list. A trial that
        was running when its process died is tried again."""
        trials = self.study.get_trials(deepcopy=False)
        for trial in trials:
            if trial.state == TrialState.RUNNING:
                self.study.tell(trial.number, state=TrialState.FAIL)
                self._try_again(trial)
        if not trials and self.grid:
            for value in self.grid:
                self.study.enqueue_trial(dict.fromkeys(self.space, value))
        elif not trials:
            now = {name: value_of(self.config, name) for name in self.space}
            self.study.enqueue_trial({name: value for name, value in now.items() if holds(self.space[name], value)})

    def _run_trial(self, trial: Trial, material: Material) -> None:
        """Train, and tell the study how it ended."""
        config = with_settings(self.config, trial.params)
        train, valid = material.corpora(config)
        run = untrained(config, train, material.vectors)
        watch = _Watch(trial, self.config.training.metric, run.config.training.epochs, self.deadline, not self.grid)
        try:
            fit(run, train, valid, TrainingContext(progress=False, on_epoch=watch.on_epoch, on_step=watch.on_step))
        except TimeIsUpError:
            trial.set_user_attr("note", "cut at the time limit")
            if watch.value is None or self.grid:
                self.study.tell(trial, state=TrialState.FAIL)
                self._try_again(self.study.trials[trial.number])
                return
        except optuna.TrialPruned:
            self.study.tell(trial, state=TrialState.PRUNED)
            return
        except TrainingError as error:  # such as a NaN loss: worse than any score
            trial.set_user_attr("note", str(error).partition(";")[0])
            self.study.tell(trial, state=TrialState.PRUNED)
            return
        self.study.tell(trial, watch.value)

    def _try_again(self, trial: FrozenTrial) -> None:
        tried = int(trial.user_attrs.get("tried", 0)) + 1
        if tried <= RETRIES or trial.user_attrs.get("note"):  # cut by the time limit
            self.study.enqueue_trial(trial.params, user_attrs={"tried": tried})


class _NoLock(JournalFileOpenLock):
    """The folder is locked already; and Optuna's own locks outlive a killed process."""

    def __init__(self) -> None:
        pass

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _drop_half_line(journal: Path) -> None:
    """Remove what a kill left at the end of the journal."""
    if journal.exists():
        content = journal.read_bytes()
        with journal.open("r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)


class TimeIsUpError(Exception):
    """Raised within training at the time limit."""


@dataclass(eq=False)
class _Watch:
    """Reports the epochs of a trial to the study and stops it. `value` is that of the best epoch; larger is better."""

    trial: Trial
    metric: str
    epochs: int
    deadline: float  # seconds since 1970
    prune: bool
    value: float | None = None
    began: float = field(default_factory=time.time)

    def on_epoch(self, epoch: Epoch) -> None:
        value = METRICS[self.metric] * epoch.valid[self.metric]
        if epoch.best or self.value is None:
            self.value = value
        self.trial.report(value, epoch.epoch)
        self.trial.set_user_attr("epochs", epoch.epoch + 1)
        self.trial.set_user_attr("seconds", time.time() - self.began)
        if epoch.epoch + 1 == self.epochs or epoch.phase == "fit":
            return
        if time.time() > self.deadline:
            raise TimeIsUpError
        if self.prune and self.trial.should_prune():
            raise optuna.TrialPruned

    def on_step(self, step: Step) -> None:
        if not step.ends_epoch and time.time() > self.deadline:
            raise TimeIsUpError


def _nothing(study: optuna.Study, out: Path) -> str:
    notes = [trial.user_attrs.get("note") for trial in study.trials if trial.state == TrialState.PRUNED]
    if notes and notes[-1]:
        return f"no trial reached a score, the last because {notes[-1]}; try smaller learning rates with --vary"
    return (
        "the time was too short for one epoch of one trial; give more with --minutes (the same command resumes "
        f"{out}), or less data with another --out"
    )
