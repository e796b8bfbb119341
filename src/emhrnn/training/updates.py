"""A trained run learns from more documents. New words, classes and phrases get a place behind those that are there;
what was learned keeps its own.

    new documents            all of them, with the weight NEW_WEIGHT: each counts as if it were there so often
    documents from before    RATIO for each new one, a random sample of those that the run still has, so that what they
                             said is not forgotten. The new run folder has all of them

With LEAST_HELD_OUT new documents or more, a part of them is held out beside the validation documents from before, and
picks the best epoch. With fewer, all epochs are done: old documents alone would choose the model that learned least.
A run that was cross-validated has learned from all of its documents, so that none of them validates; where none is held
out at all, probabilities are not calibrated.
The values were chosen in one small trial, with 20 corrections; more weight for new documents cost accuracy on others.
"""

import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.corpus import BatchPlan, Corpus
from emhrnn.corpus.preparation import union
from emhrnn.errors import ConfigError, DataError, EmhrnnError
from emhrnn.models.evidence import Evidence
from emhrnn.text import Vocabulary
from emhrnn.training.card import write_results
from emhrnn.training.config import with_settings
from emhrnn.training.data import Named, described
from emhrnn.training.folder import run_folder
from emhrnn.training.loop import make_objective, steps
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.progress import FitResult, TrainingContext
from emhrnn.training.resume import open_run
from emhrnn.training.run import Run, describe, load_run, new_run, read_description, run_files, run_of_files
from emhrnn.training.schedule import Position, Purpose, numpy_generator
from emhrnn.training.train import DEFAULT, TRAIN, VALID, check_label_settings, fit

RATIO, NEW_WEIGHT = 5, 2.0
EPOCHS = 4
LEAST_HELD_OUT = 200
MOST_KNOWN = 200  # documents before a portion that count beside it


Reader = Callable[[Vocabulary | None, tuple[str, ...] | None], Corpus]
"""Reads the new documents with the words and classes that are given; None: with those that they have."""


@dataclass(frozen=True, eq=False)
class Continued:
    """The grown run, what it learned from, and how it went."""

    run: Run
    train: Corpus
    valid: Corpus
    fitted: FitResult
    new: int  # documents
    replayed: int


def continued(
    start: Path | None,
    run: Run,
    read: Reader,
    folder: Path,
    settings: Mapping[str, Any] | None = None,
    context: TrainingContext = DEFAULT,
) -> Continued:
    """Train on new documents, from `run`, which must be trainable. `start` is its folder, where documents from before
    are looked for. The corpora are written below `folder`; `settings` are those to change, such as "training.epochs".

    Raises:
        ConfigError: the model is fitted in one go, or reads users and products.
        DataError: the documents cannot be read, or have no labels of the run's kind.
    """
    name = run.config.model.name
    if run.model.fits_at_once:
        raise ConfigError(f"{name} is fitted in one go; train it again on all documents")
    if run.config.reads_ids:
        raise ConfigError(f"the run {name} reads users and products, whose number is fixed; train it again")
    found = read(None, None)
    if not found.labelled or found.multi_label != run.multi_label:
        kind = "a list of labels" if run.multi_label else "one label"
        raise DataError(f"the run was trained with {kind} per document; give new documents with {kind} each")
    vocabulary = run.vocabulary | found.vocabulary
    classes = (*run.classes, *(name for name in found.classes if name not in run.classes))
    new = read(vocabulary, classes)
    old_train, old_valid = documents_before(start, vocabulary)
    config = with_settings(run.config, {"training.epochs": EPOCHS, **(settings or {}), "data.folds": 0})
    seed = config.training.seed
    held_out = None
    if len(new) >= LEAST_HELD_OUT and config.data.validation:
        new, held_out = new.split(config.data.validation, numpy_generator(seed, Purpose.SPLIT))
    parts, rows = [new], np.arange(len(new))
    if old_train is not None:
        parts.append(old_train)
        many = min(len(old_train), RATIO * len(new))
        drawn = numpy_generator(seed, Purpose.SPLIT, 1).choice(len(old_train), many, replace=False)
        rows = np.concatenate([rows, len(new) + np.sort(drawn)])
    weights = [NEW_WEIGHT, 1.0][: len(parts)]
    train = union(parts, folder / TRAIN, vocabulary=vocabulary, classes=classes, weights=weights)
    others = [part for part in (held_out, old_valid) if part is not None]
    valid = union(others, folder / VALID, vocabulary=vocabulary, classes=classes) if others else train
    grown_run = grown(run, vocabulary, classes)
    grown_run.config = config if others else with_settings(config, {"training.calibrate": False})
    if old_train is None:
        context.say("the run has no documents from before any more, so that it may forget some of what it learned")
    if not others and config.training.calibrate:
        context.say(
            "no document is held out, so that probabilities are not calibrated; emhrnn calibrate does it with others"
        )
    if context.progress:
        sys.stderr.write(_told(run, grown_run, len(new), len(rows) - len(new)) + "\n")
    if isinstance(grown_run.model, Evidence):  # counts phrases and classes, with the weights that they have in the loss
        plan = BatchPlan(train.lengths[: len(new)], words=200_000)
        grown_run.model.grow([train.batch(rows) for rows in plan.in_order()])
    fitted = fit(grown_run, train.select(rows), valid, context, select=held_out is not None)
    grown_run.config = config  # the next continuation may have documents to calibrate on
    return Continued(grown_run, train, valid, fitted, len(new), len(rows) - len(new))


def continue_run(
    start: Path, data: Named, out: Path, settings: Mapping[str, Any], context: TrainingContext, *, overwrite: bool
) -> Continued:
    """A run folder at `out` that continues from the run `start` with new documents."""
    run = load_run(start, trainable=True)
    with run_folder(out, overwrite=overwrite), tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:

        def read(vocabulary: Vocabulary | None, classes: tuple[str, ...] | None) -> Corpus:
            return data.prepare(
                Path(scratch) / ("new" if vocabulary else "first"), vocabulary=vocabulary, classes=classes,
                min_count=run.config.data.min_count, multi_label=run.multi_label, text=run.text,
                progress=context.progress,
            )  # fmt: skip

        done = continued(start, run, read, out, settings, context)
        describe(
            out,
            done.run,
            data={
                "train": described(data, done.train, TRAIN),
                "valid": described(data, done.valid, VALID if done.valid is not done.train else TRAIN),
            },
            vectors=None,
            vectors_sha256=None,
            command=shlex.join(sys.argv),
            job=None,
            **{"from": {"run": str(start), "new": done.new, "replayed": done.replayed}},
        )
        write_results(out, done.run, done.fitted)
    return done


def _told(before: Run, now: Run, new: int, replayed: int) -> str:
    names = now.classes[len(before.classes) :]
    parts = [
        f"{new:,} new documents to learn from, {replayed:,} from before",
        f"{len(now.vocabulary) - len(before.vocabulary):,} new words",
        f"new classes: {', '.join(map(repr, names))}" if names else "",
    ]
    return "; ".join(filter(None, parts))


def trainable(run: Run) -> Run:
    """The run with a model of torch: what predicts may not be what learns."""
    return run if isinstance(run.model, torch.nn.Module) else run_of_files(run_files(run), trainable=True)


def documents_before(start: Path | None, vocabulary: Vocabulary) -> tuple[Corpus | None, Corpus | None]:
    """Training and validation documents of a run, where it still has them; of the latter none that it learned from."""
    if start is None:
        return None, None
    try:
        opened = open_run(start, vectors=False)
    except EmhrnnError:  # they are gone, or it was saved without them
        return None, None
    parts = read_description(start)["data"]
    learned = parts["valid"]["corpus"] == parts["train"]["corpus"]  # nothing was held out when it was continued before
    learned = learned or opened.run.config.data.folds > 0 or not opened.select
    return opened.train.remap(vocabulary), None if learned else opened.valid.remap(vocabulary)


def grown(run: Run, vocabulary: Vocabulary, classes: tuple[str, ...]) -> Run:
    """The run with more words and classes behind its own. Vectors of new words are 0, and so is what else of them and
    of new classes was not learned."""
    table = torch.zeros(len(vocabulary), run.embedding_size)
    larger = new_run(
        run.config, vocabulary, classes, table,
        multi_label=run.multi_label, text=run.text,
    )  # fmt: skip
    larger.lengths = run.lengths
    before = run.model.state_dict()
    larger.model.take_sizes(before)
    with torch.no_grad():
        for name, tensor in larger.model.state_dict().items():
            part = before.get(name, tensor)  # two classes have nothing to mix, three have
            if tensor.shape != part.shape:
                tensor.zero_()
            tensor[tuple(slice(size) for size in part.shape)] = part
    return larger


@dataclass
class Increments:
    """Training by portions, as `partial_fit` of the estimator does: a run and its optimiser. Each portion is one pass
    over its texts.

    Portions count as epochs in the schedule of EM. The learning rate does not decay, because the number of portions is
    unknown. Running values, such as the threshold of phrase ends, move by the portion's share of all documents, so
    that a few texts do not undo what many have shown."""

    run: Run
    position: Position = field(default_factory=Position)
    known: int = 0  # documents before; capped at MOST_KNOWN, so that old ones lose influence

    @cached_property
    def optimizer(self) -> Optimizer:
        """Made at the first portion: before it, some models have no parameters for their phrases."""
        return Optimizer(self.run.model, self.run.config.training, indicator_pace=self.run.config.em.pace)

    def add(self, portion: Corpus) -> None:
        """One pass over some documents, which must be in the run's own words and classes."""
        config = self.run.config
        check_label_settings(self.run, portion)
        self.run.uncalibrate()  # they were fitted to the weights before
        objective = make_objective(self.run.model, config, portion, known=self.known)
        once = config.training.model_copy(update={"epochs": self.position.epoch + 1, "decay": "none"})
        for _ in steps(objective, self.optimizer, portion, once, self.position):
            pass
        objective.end_epoch()
        self.known = min(self.known + len(portion), MOST_KNOWN)

    def state(self) -> dict[str, Any]:
        """Plain values and arrays, without the run."""
        tensors = {name: tensor.numpy().copy() for name, tensor in self.optimizer.state_dict().items()}
        return {"position": vars(self.position).copy(), "known": self.known, "optimizer": tensors}

    @classmethod
    def restored(cls, run: Run, state: dict[str, Any]) -> "Increments":
        increments = cls(run, Position(**state["position"]), state["known"])
        arrays: dict[str, np.ndarray] = state["optimizer"]
        increments.optimizer.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        return increments
