"""One trial of a study: train with the given settings, report every epoch, stop when it is hopeless or time is up.

`StudyData` is what all trials share: the corpora, prepared once, and the word vectors.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import optuna
from optuna.trial import Trial, TrialState

from emhrnn.corpus import Corpus, TextSettings, prepare
from emhrnn.errors import DataError, TrainingError
from emhrnn.evaluation.scores import METRICS
from emhrnn.text import Vectors
from emhrnn.training.config import Config, DataConfig
from emhrnn.training.data import (
    Named,
    check_same_kind,
    embedding_table,
    in_model_words,
    other_corpus,
    prepared,
    text_settings,
    with_frequent_names,
)
from emhrnn.training.progress import Epoch, Step, TrainingContext
from emhrnn.training.run import Run, new_run
from emhrnn.training.schedule import Purpose, numpy_generator
from emhrnn.training.train import fit

TRAIN, VALID = Path("corpus", "train"), Path("corpus", "valid")  # in the folder of the study


@dataclass(eq=False)
class StudyData:
    """Training data with all its words, and validation data; None holds out part of the training data."""

    train: Corpus
    valid: Named | None
    vectors: Vectors | None
    _ready: dict[DataConfig, tuple[Corpus, Corpus]] = field(default_factory=dict)

    def corpora(self, config: Config) -> tuple[Corpus, Corpus]:
        """The training and validation corpora that `emhrnn train` would use with these settings."""
        if config.data not in self._ready:
            train = in_model_words(self.train, config, self.vectors)
            if self.valid is None:
                generator = numpy_generator(config.training.seed, Purpose.SPLIT)
                self._ready[config.data] = train.split(config.data.validation, generator)
            else:
                self._ready[config.data] = train, other_corpus(self.valid, Path(), train)
        return with_frequent_names(config, *self._ready[config.data])

    def new_run(self, config: Config) -> Run:
        """An untrained run with these settings."""
        train, _ = self.corpora(config)
        table = embedding_table(config, train.vocabulary, self.vectors)
        return new_run(
            config.for_classes(len(train.classes)), train.vocabulary, train.classes, table,
            multi_label=train.multi_label, text=train.text, users=train.users, products=train.products,
        )  # fmt: skip


def prepare_data(
    folder: Path, data: Named, valid: Named | None, config: Config, vectors: Vectors | None, *, progress: bool
) -> StudyData:
    """The data of a study, prepared in its folder by the first process that needs it.

    Raises:
        DataError: the data cannot be used for training or validation.
    """
    train = _once(data, folder / TRAIN, config, progress=progress)
    if not train.labelled:
        raise DataError(f"{data.path} has no labels; training needs a label for every document")
    train.check_trainable()
    if valid is None:
        return StudyData(train, None, vectors)
    held_out = _once(valid, folder / VALID, config, like=train, progress=progress)
    if not held_out.labelled or held_out.path is None:
        raise DataError(f"{valid.path} has no labels; validation data needs a label for every document")
    check_same_kind(valid.path, held_out, multi_label=train.multi_label)
    return StudyData(train, Named(path=held_out.path), vectors)


def _once(data: Named, place: Path, config: Config, *, like: Corpus | None = None, progress: bool) -> Corpus:
    if place.exists():
        return Corpus.open(place, verify=False)
    corpus = prepared(data)
    if corpus is not None:
        if like is None and text_settings(config.data) not in (TextSettings(), corpus.text):
            raise DataError(
                f"{data.path} was prepared with other text settings than data.lowercase and the caps ask for; "
                "prepare it anew, or leave the settings out"
            )
        return corpus
    return prepare(
        data.path, place, format=data.format, columns=data.columns, split=data.split, progress=progress,
        text=text_settings(config.data) if like is None else like.text,
        classes=None if like is None else like.classes,
        users=None if like is None else like.users, products=None if like is None else like.products,
    )  # fmt: skip


class TimeIsUpError(Exception):
    """Raised within training at the time limit; `run_trial` catches it."""


class HopelessError(Exception):
    """Raised within training of a trial that the pruner gives up; `run_trial` catches it."""


@dataclass(eq=False)
class Watch:
    """Reports the epochs of a trial to the study and stops it. `value` is that of the best epoch; larger is better."""

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


def run_trial(study: optuna.Study, watch: Watch, data: StudyData, *, whole: bool) -> bool:
    """Train, and tell the study how it ended. False if the trial must be tried again: the time limit came before the
    end of the first epoch or, where a trial must be `whole`, before the end."""
    trial = watch.trial
    try:
        train, valid = data.corpora(watch.config)
        run = data.new_run(watch.config)
        fit(run, train, valid, TrainingContext(progress=False, on_epoch=watch.on_epoch, on_step=watch.on_step))
    except TimeIsUpError:
        trial.set_user_attr("note", "cut at the time limit")
        if watch.value is None or whole:
            study.tell(trial, state=TrialState.FAIL)
            return False
    except HopelessError:
        study.tell(trial, state=TrialState.PRUNED)
        return True
    except TrainingError as error:  # such as a NaN loss: worse than any score
        trial.set_user_attr("note", str(error).partition(";")[0])
        study.tell(trial, state=TrialState.PRUNED)
        return True
    study.tell(trial, watch.value)
    return True
