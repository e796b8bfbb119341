"""`train`: from named data to a run folder. The command line and the demo only call this."""

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from emhrnn.corpus import Corpus, is_corpus
from emhrnn.corpus.readers.source import data_files
from emhrnn.errors import ConfigError, DataError
from emhrnn.files import sha256, write_json, write_text
from emhrnn.models.pretrained import check_source
from emhrnn.models.row import VECTORS
from emhrnn.models.segmentation import rule
from emhrnn.models.table import MODELS, OVERLAPPING, check_model
from emhrnn.text import UNK, Vectors
from emhrnn.training.card import card_of, markdown
from emhrnn.training.checkpointing import FOLDER, Checkpoints
from emhrnn.training.config import ONE_LEVEL, Config
from emhrnn.training.data import (
    Named,
    check_ids,
    check_same_kind,
    checksum,
    embedding_table,
    other_corpus,
    training_corpus,
    with_frequent_names,
)
from emhrnn.training.fit import Result, fit
from emhrnn.training.folder import run_folder
from emhrnn.training.history import Epoch
from emhrnn.training.job import ALONE, Job, name_of_job
from emhrnn.training.loop import Step
from emhrnn.training.material import material_line
from emhrnn.training.run import CARD, METRICS, Run, describe, identity, new_run
from emhrnn.training.state import Purpose, numpy_generator

TRAIN, VALID = Path("corpus", "train"), Path("corpus", "valid")  # in the run folder


@dataclass(frozen=True, eq=False)
class Trained:
    run: Run
    fitted: Result
    train: Corpus
    valid: Corpus


def train(
    data: Named,
    out: Path,
    *,
    config: Config,
    valid: Named | None = None,
    vectors: Vectors | None = None,
    vectors_file: Path | None = None,
    overwrite: bool = False,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    job: Job = ALONE,
) -> Trained:
    """Prepare the data, train, and leave a complete run folder at `out`. In a job of several processes this is for
    the first one, and the others `follow`.

    When this fails before the first epoch or checkpoint is done, nothing of it stays; after that, `out` holds the best
    model so far, and `resume` goes on from the last checkpoint.

    Raises:
        DataError: the data cannot be used, or `out` is taken. With `overwrite`, a run that is there is replaced as soon
            as the first epoch of the new one is done.
    """
    check_settings(config, vectors)
    check_needed_vectors(config, vectors)
    if out.exists() and data.path.resolve().is_relative_to(out.resolve()):
        raise DataError(f"the data {data.path} lies inside {out}, where the run is to be written; give another folder")
    if out.resolve().is_relative_to(data.path.resolve()) and data_files(data.path) == [data.path]:
        raise DataError(f"{out} lies inside the data, whose folders are classes; give a folder outside {data.path}")
    with run_folder(out, overwrite=overwrite), job.watched():
        training, validation = with_frequent_names(config, *_corpora(data, valid, out, config, vectors, progress))
        table = embedding_table(config, training.vocabulary, vectors)
        run = new_run(
            config.for_classes(len(training.classes)), training.vocabulary, training.classes, table,
            multi_label=training.multi_label, text=training.text, users=training.users, products=training.products,
        )  # fmt: skip
        described = {
            "train": _described(data, training, out / TRAIN),
            "valid": _described(valid or data, validation, out / VALID if valid is not None else None),
        }
        source = None if vectors is None else str(vectors_file.resolve()) if vectors_file else "memory"
        checked = None if vectors is None or vectors_file is None else sha256(vectors_file)
        describe(
            out, run, data=described, vectors=source, vectors_sha256=checked, command=shlex.join(sys.argv),
            job=name_of_job(),
        )  # fmt: skip
        job.tell()
        if progress:
            sys.stderr.write(material_line(data.path.name, training, validation) + "\n")
        fitted = fit_into(
            out, run, training, validation, progress=progress, on_epoch=on_epoch, on_step=on_step, job=job
        )  # fmt: skip
    return Trained(run, fitted, training, validation)


def fit_into(
    out: Path,
    run: Run,
    training: Corpus,
    validation: Corpus,
    *,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
    on_step: Callable[[Step], None] | None = None,
    say: Callable[[str], None] = print,
    job: Job = ALONE,
) -> Result:
    """Train the described run at `out`, from its newest checkpoint on if there is one, to its metrics."""
    checkpoints = checkpoints_of(out, run, training, validation, say=say, job=job)
    fitted = fit(
        run, training, validation, folder=out if job.first else None, checkpoints=checkpoints, progress=progress,
        on_epoch=on_epoch, on_step=on_step, job=job,
    )  # fmt: skip
    if job.first:
        write_metrics(out, fitted)
        checkpoints.keep_last()
    return fitted


def checkpoints_of(
    out: Path, run: Run, training: Corpus, validation: Corpus, *, say: Callable[[str], None] = print, job: Job = ALONE
) -> Checkpoints:
    key = {
        "words or classes": identity(run),
        "data": "-".join(checksum(corpus.path) for corpus in (training, validation) if corpus.path is not None),
    }
    seconds = run.config.training.checkpoint_seconds
    return Checkpoints(out / FOLDER, key, run.config, seconds=seconds, say=say, writes=job.first)


def _described(named: Named, corpus: Corpus, own: Path | None) -> dict[str, Any]:
    """Where the documents come from and where they are; `own` is the corpus in the run, if they were prepared there."""
    place = None
    if own is not None:
        place = str(own.relative_to(own.parent.parent)) if is_corpus(own) else str(named.path.resolve())
    return {
        "source": str(named.path),
        "sha256": checksum(named.path),
        "read_as": named.read_as(),
        "corpus": place,  # relative to the run; none: split off the training data
        "documents": len(corpus),
        "words": int(corpus.lengths.sum()),
        "classes": class_counts(corpus),
    }


def class_counts(corpus: Corpus) -> dict[str, int]:
    """Documents of each class."""
    if corpus.labels is None:
        return {}
    several = corpus.labels.ndim == 2
    counts = (corpus.labels > 0.5).sum(axis=0) if several else np.bincount(corpus.labels, minlength=len(corpus.classes))
    return dict(zip(corpus.classes, counts.tolist(), strict=True))


def check_settings(config: Config, vectors: Vectors | None = None) -> None:
    """Raise a ConfigError for what the model's builder would refuse, before any data is read."""
    size = config.model.embedding_size
    if "embedding_size" in config.model.model_fields_set and vectors is not None and vectors.size != size:
        raise ConfigError(
            f"model.embedding_size is {size} and the vectors have {vectors.size} numbers; leave it out, they decide"
        )
    check_model(config.model.name)
    levels, epochs = config.model.levels, config.training.epochs
    if levels > 1 and config.model.name != "em-hrnn":
        raise ConfigError(f"model.levels = {levels}, but {config.model.name} has no latent levels; use em-hrnn")
    for name in ONE_LEVEL:
        if levels > 1 and getattr(config.model, name):
            raise ConfigError(f"model.{name} = true is for em-hrnn with one level, here are {levels}; leave it out")
    if levels > epochs:
        raise ConfigError(f"{levels} levels share {epochs} epochs, one each at least; raise training.epochs")
    if config.model.name == "em-hrnn" and config.em.theta == "all" and config.training.label_smoothing:
        raise ConfigError(
            f"training.label_smoothing = {config.training.label_smoothing}, but em.theta = all weighs segmentations by "
            "the one true label; use em.theta = map or sample, or no smoothing"
        )
    if config.em.windows and config.em.estep != "blocks":
        raise ConfigError(
            f"em.windows = {config.em.windows} is for em.estep = blocks, not {config.em.estep}; leave it out, or set "
            "em.blocks"
        )
    if config.model.name == "transformer":
        check_source(config.model.pretrained)
    overlapping = config.model.segmentation == OVERLAPPING and config.model.name == "evidence"
    if config.model.segmentation != "learned" and not overlapping:
        rule(config.model.segmentation, [UNK], config.em.rate)


def check_needed_vectors(config: Config, vectors: Vectors | None) -> None:
    """Raise a ConfigError for a model that lives on word vectors and has none: random ones would say nothing."""
    name = config.model.name
    if VECTORS in MODELS[name].needs and vectors is None:
        raise ConfigError(
            f"{name} needs pretrained word vectors, and none were given; give --vectors FILE, in Python vectors="
        )


def write_metrics(folder: Path, fitted: Result) -> None:
    """Scores of the best epoch, and what training took; and the model card. The metrics are the last file of a run:
    they say that training is done."""
    metrics = {
        "best_epoch": fitted.best.epoch,
        "epochs": len(fitted.epochs),
        "seconds": sum(epoch.seconds for epoch in fitted.epochs),
        "words_per_second": float(np.median([epoch.words_per_second for epoch in fitted.epochs])),
        "finished": datetime.now(UTC).date().isoformat(),
        "valid": fitted.scores.to_dict(),
        "calibration": None if fitted.calibration is None else fitted.calibration.to_dict(),
    }
    write_text(folder / CARD, markdown(card_of(folder, metrics)))
    write_json(folder / METRICS, metrics)


def _corpora(
    data: Named, valid: Named | None, out: Path, config: Config, vectors: Vectors | None, progress: bool
) -> tuple[Corpus, Corpus]:
    """Training and validation data, in the same words and classes."""
    corpus = training_corpus(data, out / TRAIN, config, vectors, progress=progress)
    if not corpus.labelled:
        raise DataError(f"{data.path} has no labels; training needs a label for every document")
    corpus.check_trainable()
    if valid is None:
        return corpus.split(config.data.validation, numpy_generator(config.training.seed, Purpose.SPLIT))
    validation = other_corpus(
        valid, out / VALID,
        vocabulary=corpus.vocabulary, classes=corpus.classes, text=corpus.text,
        users=corpus.users, products=corpus.products, progress=progress,
    )  # fmt: skip
    if not validation.labelled:
        raise DataError(f"{valid.path} has no labels; validation data needs a label for every document")
    check_same_kind(valid.path, validation, multi_label=corpus.multi_label)
    check_ids(config, valid.path, validation.report.columns)
    return corpus, validation
