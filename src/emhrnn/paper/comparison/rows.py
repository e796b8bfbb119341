"""The rows of a comparison: how they are written, and the job that trains and tests one of them with one seed.

hn-att                                          a system
em-hrnn[em.estep=blocks,em.block_length=5]      with settings of its own
window 5=em-hrnn[em.estep=blocks]               under a name of its own
lstm[training.learning_rate=0.01|0.001]         with the value that is best on the validation rows
"""

import base64
import re
import shutil
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from emhrnn.api import Trained, train
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.evaluation.scores import score
from emhrnn.files import atomic_file
from emhrnn.models.model import DocumentModel
from emhrnn.models.predictor import Predictor
from emhrnn.models.table import check_model
from emhrnn.paper.jobs import report_progress
from emhrnn.paper.reports import commit
from emhrnn.shapes import Bool
from emhrnn.training.config import Config, validated, with_settings
from emhrnn.training.data import Named, other_corpus
from emhrnn.training.progress import Epoch, Step
from emhrnn.training.run import CHECKPOINTS, is_run

_ROW = re.compile(r"(?:(?P<name>[^=\[\]]+)=)?(?P<model>[^=\[\]]+)(?:\[(?P<settings>[^\[\]]*)\])?")
_COMMA = re.compile(r",(?![^\[]*\])")  # not inside brackets
OF_ALL = ("data.", "training.seed=", "model.name=")  # settings that are the same for all rows
OF_ROWS = "data.vocabulary="  # but this one, which is about the words that a network knows


@dataclass(frozen=True)
class SystemRow:
    """`settings` are assignments as `--set` takes them, for this row alone. One of them may have several values with
    `|` between them, of which the validation rows pick one."""

    name: str
    model: str
    settings: tuple[str, ...] = ()

    @property
    def tried(self) -> tuple[str, ...]:
        """That setting, with each of the values; empty where there is none."""
        several = (setting.partition("=") for setting in self.settings if "|" in setting)
        return tuple(f"{name}={value}" for name, _, values in several for value in values.split("|"))

    @property
    def first(self) -> tuple[str, ...]:
        """The settings, with the first of the values."""
        return (*(setting for setting in self.settings if "|" not in setting), *self.tried[:1])


def parse_rows(texts: Sequence[str]) -> list[SystemRow]:
    """Rows from lists with commas between them.

    Raises:
        ConfigError: a row cannot be read, names no system, or stands there twice.
    """
    rows = [_parse(part.strip()) for text in texts for part in _COMMA.split(text) if part.strip()]
    if not rows:
        raise ConfigError("no model was given; give at least one, for example --models tfidf-lr,hn-att,em-hrnn")
    names = [row.name for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"the row {name!r} is given twice; give one of them another name: NAME={name}")
    return rows


def _parse(text: str) -> SystemRow:
    match = _ROW.fullmatch(text)
    if match is None:
        raise ConfigError(f"cannot read the row {text!r}; write model, model[section.key=value,...] or name=model[...]")
    model = match["model"].strip()
    check_model(model)
    settings = tuple(part.strip() for part in (match["settings"] or "").split(",") if part.strip())
    for setting in settings:
        if setting.startswith(OF_ALL) and not setting.startswith(OF_ROWS):
            raise ConfigError(
                f"the row {text!r} sets {setting.partition('=')[0]}, which is the same for all rows; give it by --set, "
                "or leave it out"
            )
    if sum("|" in setting for setting in settings) > 1:
        raise ConfigError(f"the row {text!r} tries values of several settings; write | in one of them alone")
    return SystemRow((match["name"] or text).strip(), model, settings)


PREDICTIONS, RUN = "predictions.npz", "run"
EVERY = 1.0  # seconds between two reports within an epoch


def train_row(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The corpora are those of `data/NAME` beside the folder of all runs. What depends on the machine, its mood and
    the moment is under `times`; all others come out the same in every repetition with the same number of threads. The
    result is all that a table needs: model and predictions may go."""
    data = folder.parent.parent / "data" / arguments["data"]
    trained = _trained(arguments, folder, data)
    best = max(trained, key=lambda name: (trained[name].fitted.best.value, -trained[name].fitted.best.loss))
    run, fitted = trained[best].model.run, trained[best].fitted
    test = other_corpus(Named(path=data / "test"), data / "test", run)
    report_progress(folder, 1.0, "testing")
    began = time.perf_counter()
    predictions = run.predict(test)
    seconds = time.perf_counter() - began
    labels = test.labels
    assert labels is not None
    scores = score(predictions.probabilities, labels, run.classes, predictions.phrases)
    predicted, right = _predicted(predictions.probabilities, labels)
    with atomic_file(folder / PREDICTIONS) as file:
        np.savez_compressed(file, predicted=predicted, right=right)
    for out in folder.glob(f"{RUN}*"):
        shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)  # large, and of no more use
    epochs = [epoch for one in trained.values() for epoch in one.fitted.epochs]
    return {
        "accuracy": scores.accuracy,
        "macro_f1": scores.macro_f1,
        "loss": scores.loss,
        "valid_accuracy": fitted.scores.accuracy,
        "documents": len(test),
        "right": pack(np.packbits(right)),
        "predicted": pack(predicted),
        "class_f1": {one.name: round(one.f1, 4) for one in scores.classes},
        "shares": {name: float(share) for name, share in run.model.shares.items()},
        "tried": {name: one.fitted.scores.accuracy for name, one in trained.items() if name},
        "picked": best,
        "parameters": learned_numbers(run.model),
        "vocabulary": len(run.vocabulary),
        "best_epoch": fitted.best.epoch + 1,
        "epochs": len(fitted.epochs),
        "phrase_length": None if predictions.phrases is None else predictions.phrases.mean,
        "times": {
            "training_seconds": round(sum(epoch.seconds for epoch in epochs), 3),
            "words_per_second": round(float(np.median([epoch.words_per_second for epoch in epochs])), 1),
            "documents_per_second": round(len(test) / seconds, 1),
            "threads": torch.get_num_threads(),
            "commit": commit(),
        },
    }


def _trained(arguments: dict[str, Any], folder: Path, data: Path) -> dict[str, Trained]:
    """The runs with each value that is tried, by the assignment of it; one without a name where nothing is. A value
    with which training diverges is left out, unless it is the only one."""
    config, tried = _config(arguments), arguments.get("tried", [""])
    trained: dict[str, Trained] = {}
    for number, assignment in enumerate(tried):
        name, _, value = assignment.partition("=")
        own = with_settings(config, {name: value}) if name else config
        out = folder / (f"{RUN}-{value}" if name else RUN)
        try:
            trained[assignment] = train_or_resume(
                out, Named(path=data / "train"), own, vectors=arguments["vectors"], valid=data / "valid"
            )
        except TrainingError:
            if not trained and number == len(tried) - 1:
                raise
    return trained


def pooled_result(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The results of the folds of one row and seed as one. Accuracy and loss are those of all test documents; macro-F1
    and validation accuracy are means over the folds, weighted by test documents; training times are summed."""
    if len(results) == 1:
        return results[0]
    weights = [result["documents"] for result in results]

    def mean(key: str) -> float:
        return float(np.average([result[key] for result in results], weights=weights))

    times = [result["times"] for result in results]
    return {
        **{key: mean(key) for key in ("accuracy", "macro_f1", "loss", "valid_accuracy")},
        "documents": sum(weights),
        "parameters": round(mean("parameters")),
        "best_epoch": round(mean("best_epoch")),
        "times": {
            "training_seconds": sum(one["training_seconds"] for one in times),
            "words_per_second": float(np.mean([one["words_per_second"] for one in times])),
            "documents_per_second": float(np.mean([one["documents_per_second"] for one in times])),
            "threads": max(one.get("threads", 1) for one in times),
            "commit": ", ".join(sorted({one.get("commit", "unknown") for one in times})),
        },
    }


def _config(arguments: dict[str, Any]) -> Config:
    """Records name the folder of pretrained weights; where it lies is a place."""
    settings = arguments["settings"]
    if "pretrained" in arguments:
        settings = {**settings, "model": {**settings["model"], "pretrained": arguments["pretrained"]}}
    return validated(settings)


def _predicted(probabilities: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, Bool[np.ndarray, " documents"]]:
    """The predicted class of each test document, in the order of the corpus, and whether it is right. For multi-label
    data, a row of classes for each document, which is right when all its labels are."""
    if labels.ndim == 2:
        several = (probabilities > 0.5).astype(np.uint8)
        return several, (several == (labels > 0.5)).all(axis=1)
    predicted = probabilities.argmax(axis=1).astype(np.min_scalar_type(probabilities.shape[1]))
    return predicted, predicted == labels


def pack(array: np.ndarray) -> str:
    """Its bytes as text for JSON: compressed, in base 64."""
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")


def unpack(text: str, documents: int) -> Bool[np.ndarray, " documents"]:
    """Which test documents are right, of a record."""
    bits = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8)
    return np.unpackbits(bits, count=documents).astype(bool)


def learned_numbers(model: Predictor) -> int:
    """How many numbers were learned besides word vectors. Of a fitted model, those of its tables that are in use."""
    if model.fits_at_once:
        named = dict(model.named_buffers()) if isinstance(model, DocumentModel) else model.state_dict()
        tables = [np.asarray(table) for name, table in named.items() if name != "vectors"]
        return sum(int(np.count_nonzero(table)) for table in tables if table.dtype.kind == "f")
    assert isinstance(model, DocumentModel)
    return sum(
        p.numel() for name, p in model.named_parameters() if p.requires_grad and "embedding" not in name.split(".")
    )


def train_or_resume(
    out: Path, data: Named, config: Config, *, vectors: str | None, valid: Path | None = None
) -> Trained:
    """The run `out`, which lies in the job's folder."""
    watch = _Watch(out.parent, config.training.epochs)
    report_progress(out.parent, 0.0, "reading")
    if is_run(out):
        return train(None, out, resume=True, progress=False, on_epoch=watch.epoch, on_step=watch.step)
    return train(
        data, out, config=config, valid=valid, vectors=vectors, progress=False, on_epoch=watch.epoch, on_step=watch.step
    )  # fmt: skip


class _Watch:
    """The share of the work that is done: of all epochs, and one more for what comes after them."""

    def __init__(self, folder: Path, epochs: int) -> None:
        self.folder = folder
        self.epochs = epochs
        self.valid = ""  # of the last epoch
        self.told = 0.0

    def step(self, step: Step) -> None:
        now = time.monotonic()
        if now - self.told >= EVERY:
            self.told = now
            self._tell(step.epoch + (step.batch + 1) / step.batches, step.epoch)

    def epoch(self, epoch: Epoch) -> None:
        self.valid = f", valid {epoch.valid['accuracy']:.1%}"
        self._tell(epoch.epoch + 1.0, epoch.epoch)

    def _tell(self, done: float, epoch: int) -> None:
        report_progress(self.folder, done / (self.epochs + 1), f"epoch {epoch + 1} of {self.epochs}{self.valid}")
