"""Predictions on held-out documents, made with all processes of a job: scores of an epoch, cross-validation where
documents are few, and the calibration of probabilities at the end of training and on new data (the mathematics are in
evaluation/calibration.py).

A tenth of 300 documents cannot pick an epoch, and is missed in training. So models are first trained on all folds but
one, for each fold; their predictions of the fold that they have not seen give the scores of every epoch. The model
itself is trained on all documents, to the best epoch of those scores; they also calibrate its probabilities.

RUN/checkpoint/folds.safetensors    these predictions, to resume with
"""

import copy
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from emhrnn.corpus import Corpus, Report
from emhrnn.corpus.batch import BatchPlan
from emhrnn.errors import CheckpointError, DataError
from emhrnn.evaluation.calibration import FEWEST, Calibration, Labels, fit_temperature
from emhrnn.evaluation.decision import Conformal, abstentions
from emhrnn.evaluation.predict import BATCH_WORDS, Predictions
from emhrnn.evaluation.scores import METRICS, PhraseLengths, Scores, score
from emhrnn.files import atomic_folder, check_free
from emhrnn.models.settings import EvidenceConfig
from emhrnn.shapes import Float32, Int64
from emhrnn.training.arrays import load_arrays, save_arrays
from emhrnn.training.card import write_card
from emhrnn.training.config import Config, with_settings
from emhrnn.training.data import Named, labelled_corpus, learned_from
from emhrnn.training.distributed import ALONE, Processes
from emhrnn.training.folder import checkpoint_files, locked_run
from emhrnn.training.pack import SUFFIX, is_unpacked, pack
from emhrnn.training.progress import TrainingContext
from emhrnn.training.run import (
    CHECKPOINTS,
    WEIGHTS,
    Run,
    copy_model,
    load_run,
    read_description,
    read_metrics,
    save_weights,
)
from emhrnn.training.schedule import Best, Purpose, numpy_generator

FOLDS = 5
LEAST, MOST = 50, 1500  # documents: with fewer nothing helps; of more, a tenth is enough
FILE = "folds.safetensors"


def predict_together(job: Processes, run: Run, corpus: Corpus) -> Predictions:
    """The same for every process."""
    if job.size == 1 or len(corpus) < job.size:  # too few to share: all of them predict all
        return run.predict(corpus)
    mine = np.arange(job.rank, len(corpus), job.size)
    part = run.predict(corpus.select(mine))
    whole = torch.zeros(2, len(corpus), len(run.classes))
    whole[:, torch.from_numpy(mine)] = torch.from_numpy(np.stack([part.probabilities, part.logits]))
    probabilities, logits = job.total(whole).numpy()
    return Predictions(probabilities, logits, _phrases(job, part.phrases))


def _phrases(job: Processes, part: PhraseLengths | None) -> PhraseLengths | None:
    longest, any_phrases = job.largest([part.longest if part is not None else 0, part is not None])
    if not any_phrases:
        return None
    histogram = torch.zeros(longest + 1, dtype=torch.int64)
    if part is not None:
        histogram[1 : part.longest + 1] = torch.tensor(part.histogram)
    return PhraseLengths.of(job.total(histogram).numpy())


def validate(run: Run, corpus: Corpus, job: Processes = ALONE) -> Scores:
    """Scores of the run as it is, on labelled data of its own classes."""
    return _score(run, corpus, predict_together(job, run, corpus))


def validate_epoch(run: Run, valid: Corpus, job: Processes = ALONE) -> Scores:
    """Scores of the run as it would be if training ended here: with fitted shares, and no temperature."""
    if run.config.training.calibrate:
        _fit_shares(run, valid, job)
    return validate(run, valid, job)


def end_training(
    run: Run,
    valid: Corpus,
    folder: Path | None,
    epoch: int,
    job: Processes = ALONE,
    logits: Float32[np.ndarray, "documents classes"] | None = None,
) -> tuple[Scores, Calibration | None]:
    """Calibrate, if the settings want it, and keep that with the weights; the scores are those after. `logits` are
    those of models that have not seen the documents, where the run has."""
    if run.config.training.calibrate:
        found = calibrate(run, valid, job, logits)
        if folder is not None:
            save_weights(folder, run, epoch)
        return found
    run.uncalibrate()
    return _score(run, valid, _predicted(run, valid, job, logits)), None


def _predicted(
    run: Run, valid: Corpus, job: Processes, logits: Float32[np.ndarray, "documents classes"] | None
) -> Predictions:
    found = predict_together(job, run, valid)
    return found if logits is None else replace(found, logits=logits, probabilities=run.probabilities(logits))


def calibrate(
    run: Run, valid: Corpus, job: Processes = ALONE, logits: Float32[np.ndarray, "documents classes"] | None = None
) -> tuple[Scores, Calibration]:
    """Fit the temperature of a run, and the shares of a model that has some; the scores are those after."""
    run.uncalibrate()
    predictions = _predicted(run, valid, job, logits)
    before = _score(run, valid, predictions)
    shares = _fit_shares(run, valid, job)
    if shares is not None:
        predictions = predict_together(job, run, valid)
    run.temperature, remark = fit_temperature(predictions.logits, _labels(valid))
    shown, labels = run.probabilities(predictions.logits), _labels(valid)
    if labels.ndim == 1:
        run.conformal = Conformal.fitted(shown, labels)
    after = _score(run, valid, replace(predictions, probabilities=shown))
    return after, Calibration(
        temperature=run.temperature,
        documents=len(valid),
        loss_before=before.loss,
        loss_after=after.loss,
        ece_before=before.ece,
        ece_after=after.ece,
        before=before.reliability,
        after=after.reliability,
        remark=remark,
        shares=shares,
        abstentions=[] if labels.ndim == 2 else abstentions(shown, labels),
    )


def _fit_shares(run: Run, valid: Corpus, job: Processes) -> dict[str, float] | None:
    """The shares of a model that has some, as the first process finds them: other machines may round differently."""
    shares = run.model.shares
    if not shares:
        return None
    if job.first:
        run.model.fit_shares(map(valid.batch, BatchPlan(valid.lengths, words=BATCH_WORDS).in_order()))
    job.copy_first(shares.values())
    return {name: float(share) for name, share in shares.items()}


def _score(run: Run, corpus: Corpus, predictions: Predictions) -> Scores:
    return score(predictions.probabilities, _labels(corpus), run.classes, predictions.phrases)


def _labels(corpus: Corpus) -> Labels:
    if corpus.labels is None:
        raise DataError("the data has no labels, so there is nothing to compare predictions with; give a label column")
    return corpus.labels


def with_folds(config: Config, corpus: Corpus) -> Config:
    """The settings with `data.folds` where they leave the validation open, and documents are few: of one label each,
    and FOLDS different ones or more of every class. For models that are trained in seconds."""
    settled = {"folds", "validation"} & config.data.model_fields_set
    quick = isinstance(config.model, EvidenceConfig) and not config.model.ids
    labels = corpus.labels
    if settled or not quick or not LEAST <= len(corpus) <= MOST or labels is None or labels.ndim == 2:
        return config
    distinct = labels[corpus.first_equal == np.arange(len(corpus))]
    if np.bincount(distinct, minlength=len(corpus.classes)).min() < FOLDS:
        return config
    return with_settings(config, {"data.folds": FOLDS})


def folds_of(corpus: Corpus, folds: int, generator: np.random.Generator) -> Int64[np.ndarray, " documents"]:
    """The fold of each document: of every class about as many in each, and the same words in the same."""
    first, labels = corpus.first_equal, corpus.labels
    assert labels is not None
    distinct = np.flatnonzero(first == np.arange(len(corpus)))
    order = generator.permutation(distinct)
    if labels.ndim == 1:
        order = order[np.argsort(labels[order], kind="stable")]
    fold = np.zeros(len(corpus), dtype=np.int64)
    fold[order] = np.arange(len(order)) % folds
    result: np.ndarray = fold[first]
    return result


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """What models of the other folds said of each document after each epoch."""

    logits: Float32[np.ndarray, "epochs documents classes"]
    labels: Int64[np.ndarray, " documents"]
    classes: tuple[str, ...]

    def scores(self, run: Run, epoch: int, phrases: PhraseLengths | None = None) -> Scores:
        """With the temperature that the run has."""
        return score(run.probabilities(self.logits[epoch]), self.labels, self.classes, phrases)

    def best_epoch(self, run: Run) -> int:
        """The one that early stopping would keep."""
        settings, best = run.config.training, Best()
        for epoch in range(len(self.logits)):
            scores = self.scores(run, epoch)
            best.update(epoch, METRICS[settings.metric] * scores.metrics()[settings.metric], scores.loss)
            if best.waited >= settings.patience:
                break
        return best.epoch


def fold_predictions(
    run: Run, corpus: Corpus, folder: Path | None, *, trained: bool = False, show: bool = False
) -> FoldPredictions:
    """Those in the run folder; else of an untrained run, whose model stays as it is, and they are put there. `show` the
    progress in a terminal.

    Raises:
        CheckpointError: the file is damaged, or missing where the run is `trained` or has a checkpoint.
    """
    path = None if folder is None else folder / CHECKPOINTS / FILE
    labels = corpus.labels
    assert labels is not None
    if path is not None and path.exists():
        return FoldPredictions(load_arrays(path)[0]["logits"][: run.config.training.epochs], labels, run.classes)
    if folder is not None and (trained or checkpoint_files(folder)):
        raise CheckpointError(
            f"{path} is missing, so the scores of its epochs are unknown; train again with --overwrite"
        )
    fold = fold_numbers(run.config, corpus)
    logits = np.zeros((run.config.training.epochs, len(corpus), len(run.classes)), dtype=np.float32)
    hidden = None if show else True
    for number in tqdm(range(run.config.data.folds), desc="cross-validation", leave=False, disable=hidden):
        _train_one(run, corpus, fold == number, logits)
    if path is not None:
        path.parent.mkdir(exist_ok=True)
        save_arrays(path, {"logits": logits}, {})
    return FoldPredictions(logits, labels, run.classes)


def fold_numbers(config: Config, corpus: Corpus) -> Int64[np.ndarray, " documents"]:
    """The fold of each document of a run."""
    return folds_of(corpus, config.data.folds, numpy_generator(config.training.seed, Purpose.SPLIT))


def _train_one(run: Run, corpus: Corpus, held_out: np.ndarray, logits: np.ndarray) -> None:
    """Train a copy on the other documents, and put down what it says of the held-out ones after each epoch. Where it
    stops early, the last epoch stands for all that would have followed."""
    from emhrnn.training.train import fit  # which validates

    places = np.flatnonzero(held_out)
    judged = corpus.select(places)
    config = with_settings(run.config, {"data.folds": 0, "training.calibrate": False})
    each = replace(run, model=copy.deepcopy(run.model), config=config)

    def judge(epoch: int) -> Scores:
        predicted = each.predict(judged)
        logits[epoch, places] = predicted.logits
        assert judged.labels is not None
        return score(predicted.probabilities, judged.labels, run.classes)

    quiet = TrainingContext(progress=False, say=lambda _: None)
    done = fit(each, corpus.select(np.flatnonzero(~held_out)), judged, quiet, judge=judge)
    logits[len(done.epochs) :, places] = logits[len(done.epochs) - 1, places]


def calibrate_run(
    folder: Path, data: Named, *, out: Path | None = None, dry_run: bool = False, progress: bool = True
) -> tuple[Calibration, Report]:
    """Recalibrate a run on labelled data that it has not learned from. It begins with the weights as they were learned,
    so it is idempotent. With `out`, the run stays as it is, and that new folder, or file of the suffix .emhrnn, has a
    copy without checkpoints and data; with `dry_run`, nothing is written. Returns the calibration and a report on the
    data.

    Raises:
        DataError: the data cannot be used, or cannot decide, or `out` is taken; the run is left as it was.
    """
    read_description(folder)  # is it a run?
    if out is not None and out.suffix != SUFFIX:
        check_free(out)
    if out is None and not dry_run and is_unpacked(folder):
        raise DataError("a packed run is not changed; give --out with the name of a new folder or .emhrnn file")
    with nullcontext() if dry_run or out is not None else locked_run(folder):  # before it is read
        run = load_run(folder)
        _, note = load_arrays(folder / WEIGHTS)
        epoch = note.get("epoch", 0)
        why = "to be fitted to; calibration needs one for every document"
        with labelled_corpus(run, data, why=why, progress=progress) as corpus:
            found = np.flatnonzero(corpus.class_counts)
            if not corpus.multi_label and len(found) == 1:  # whatever says that class more often fits them better
                raise DataError(
                    f"cannot calibrate {folder} to {data.path}: all its documents are of the class "
                    f"{corpus.classes[found[0]]!r}; give documents of several classes. The run is left as it was"
                )
            if learned_from(folder, data):
                raise DataError(
                    f"cannot calibrate {folder} to {data.path}: it holds documents that the run has learned from, and "
                    "is surer of than of new ones; give others. The run is left as it was"
                )
            _, calibration = calibrate(run, corpus)
            if calibration.undecided:
                raise DataError(
                    f"cannot calibrate {folder} to {data.path}: {calibration.undecided}; give {FEWEST} documents or "
                    "more, some of which it gets wrong. The run is left as it was"
                )
            calibration = replace(calibration, source=data.path.resolve().name)
        if dry_run:
            pass
        elif out is None:
            _save(folder, run, epoch, calibration)
        elif out.suffix == SUFFIX:
            with tempfile.TemporaryDirectory(prefix="emhrnn-") as scratch:
                copy_model(folder, Path(scratch))
                _save(Path(scratch), run, epoch, calibration)
                pack(Path(scratch), out)
        else:
            with atomic_folder(out) as copy:
                copy_model(folder, copy)
                _save(copy, run, epoch, calibration)
    return calibration, corpus.report


def _save(folder: Path, run: Run, epoch: int, calibration: Calibration) -> None:
    metrics = read_metrics(folder)
    save_weights(folder, run, epoch)
    if metrics is not None:  # else it is still in training, or learned bit by bit
        metrics |= {"calibration": calibration.to_dict(), "stale": ["valid"]}  # scores are of before
        write_card(folder, metrics)
