"""Cross-validation while a model is trained on few documents: no document is held out, and each validates once.

A tenth of 300 documents cannot pick an epoch, and is missed in training. So models are first trained on all folds but
one, for each fold; their predictions of the fold that they have not seen give the scores of every epoch. The model
itself is trained on all documents, to the best epoch of those scores; they also calibrate its probabilities.

RUN/checkpoint/folds.safetensors    these predictions, to resume with
"""

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tqdm import tqdm

from emhrnn.corpus import Corpus
from emhrnn.errors import CheckpointError
from emhrnn.evaluation.scores import METRICS, PhraseLengths, Scores, score
from emhrnn.models.settings import EvidenceConfig
from emhrnn.shapes import Float32, Int64
from emhrnn.training.arrays import load_arrays, save_arrays
from emhrnn.training.config import Config, with_settings
from emhrnn.training.folder import checkpoint_files
from emhrnn.training.run import CHECKPOINTS, Run
from emhrnn.training.schedule import Best, Purpose, numpy_generator

FOLDS = 5
LEAST, MOST = 50, 1500  # documents: with fewer nothing helps; of more, a tenth is enough
FILE = "folds.safetensors"


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
    from emhrnn.training.progress import TrainingContext
    from emhrnn.training.train import fit

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
