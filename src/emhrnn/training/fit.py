"""Train a run on a corpus: the loop, with validation, history, the best weights and a progress bar around it."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.evaluation.predict import predict
from emhrnn.evaluation.scores import Scores, score
from emhrnn.training import history
from emhrnn.training.checkpoint import save_tensors
from emhrnn.training.history import Epoch
from emhrnn.training.loop import Step, steps
from emhrnn.training.objective import make_objective
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.run import HISTORY, Run, save_weights
from emhrnn.training.schedule import phase
from emhrnn.training.state import Best, Position


@dataclass
class Fitted:
    """What training came to. The run's model holds the weights of the best epoch."""

    epochs: list[Epoch]
    best: Best
    scores: Scores  # of the best epoch on the validation data


def fit(
    run: Run,
    train: Corpus,
    valid: Corpus,
    *,
    folder: Path | None = None,
    progress: bool = True,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> Fitted:
    """Train until the best epoch is `patience` epochs ago or `epochs` are done. With a folder, the history and the
    best weights are on disk as soon as they exist."""
    train.check_trainable()
    config = run.config.training
    if config.threads:
        torch.set_num_threads(config.threads)
    objective = make_objective(run.model, run.config, train)
    optimizer = Optimizer(run.model, config, indicator_pace=run.config.em.pace)
    position, best = Position(), Best()
    epochs: list[Epoch] = []
    best_weights: dict[str, Tensor] = {}
    best_scores: Scores | None = None
    meter = _Meter(config.epochs, show=progress)
    with meter:
        for step in steps(objective, optimizer, train, config, position, _saver(folder)):
            meter.add(step)
            if not step.ends_epoch:
                continue
            scores = validate(run, valid)
            value = -scores.loss if config.metric == "loss" else getattr(scores, config.metric)
            is_best = best.update(step.epoch, value)
            epoch = meter.end_epoch(step, scores, phase(run.config.em, step.epoch), is_best, objective.end_epoch())
            epochs.append(epoch)
            if is_best:
                best_weights = {name: t.clone() for name, t in run.model.state_dict().items()}
                best_scores = scores
            if folder is not None:
                history.append(folder / HISTORY, epoch)
                if is_best:
                    save_weights(folder, run, step.epoch)
            if on_epoch is not None:
                on_epoch(epoch)
            if best.waited >= config.patience and objective.settled(step.epoch):
                break
    run.model.load_state_dict(best_weights)
    assert best_scores is not None
    return Fitted(epochs, best, best_scores)


def validate(run: Run, corpus: Corpus) -> Scores:
    """Scores of the run's model as it is, on labelled data of its own classes."""
    predictions = predict(run.model, corpus, multi_label=run.multi_label)
    labels = corpus.labels
    if labels is None:
        raise DataError("the data has no labels, so there is nothing to compare predictions with; give a label column")
    return score(predictions.probabilities, labels, run.classes, predictions.phrases)


def _saver(folder: Path | None) -> Callable[[Batch], str] | None:
    if folder is None:
        return None

    def save(batch: Batch) -> str:
        path = folder / "bad-batch.safetensors"
        arrays = {
            name: torch.from_numpy(np.ascontiguousarray(getattr(batch, name)))
            for name in ("words", "sentence_offsets", "document_offsets", "rows", "labels")
            if getattr(batch, name) is not None
        }
        save_tensors(path, arrays, {"what": "the batch at which training stopped"})
        return str(path)

    return save


@dataclass
class _Meter:
    """Running sums of an epoch, and the bar that shows them."""

    epochs: int
    show: bool
    steps: list[Step] = field(default_factory=list)
    bar: "tqdm[None] | None" = None
    began: float = 0.0

    def __enter__(self) -> "_Meter":
        self.began = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def add(self, step: Step) -> None:
        self.steps.append(step)
        if self.bar is None:
            self.bar = tqdm(
                total=step.batches, desc=f"epoch {step.epoch + 1}/{self.epochs}", unit="batch", leave=False,
                disable=None if self.show else True, mininterval=0.2, initial=step.batch,
            )  # fmt: skip
        self.bar.update()
        if step.batch % 10 == 0:
            self.bar.set_postfix(loss=f"{self._loss():.3f}", words_s=f"{self._speed():,.0f}", refresh=False)

    def _loss(self) -> float:
        documents = sum(step.documents for step in self.steps)
        return sum(step.notes.get("label_loss", step.loss) * step.documents for step in self.steps) / documents

    def _speed(self) -> float:
        return sum(step.words for step in self.steps) / sum(step.seconds for step in self.steps)

    def end_epoch(self, last: Step, scores: Scores, phase: str, is_best: bool, boundaries: dict[str, float]) -> Epoch:
        words = sum(step.words for step in self.steps)
        names = {name for step in self.steps for name in step.notes}
        notes = dict(boundaries)
        notes |= {
            name: sum(step.notes[name] * step.words for step in self.steps if name in step.notes)
            / sum(step.words for step in self.steps if name in step.notes)
            for name in sorted(names)
        }
        if scores.phrases is not None:
            notes["valid_mean_phrase"] = scores.phrases.mean
            notes["valid_longest_phrase"] = float(scores.phrases.longest)
        now = time.perf_counter()
        seconds = sum(step.seconds for step in self.steps)
        epoch = Epoch(
            epoch=last.epoch,
            phase=phase,
            train_loss=self._loss(),
            learning_rate=last.learning_rate,
            valid={"accuracy": scores.accuracy, "macro_f1": scores.macro_f1, "loss": scores.loss},
            words_per_second=words / seconds,
            seconds=now - self.began,
            waiting=sum(step.waited for step in self.steps) / seconds,
            boundaries=notes,
            best=is_best,
        )
        if self.bar is not None:
            self.bar.close()
        if self.show:
            tqdm.write(_line(epoch, self.epochs), file=sys.stderr)
        self.steps, self.bar, self.began = [], None, now
        return epoch


def _line(epoch: Epoch, epochs: int) -> str:
    rate = epoch.boundaries.get("boundary_rate")
    return (
        f"epoch {epoch.epoch + 1:>3}/{epochs}  {epoch.phase:<9}  loss {epoch.train_loss:.4f}  "
        f"valid accuracy {epoch.valid['accuracy']:.4f}  loss {epoch.valid['loss']:.4f}  "
        f"{epoch.words_per_second:>9,.0f} words/s"
        + (f"  boundaries {rate:.2f}" if rate is not None else "")
        + ("  best" if epoch.best else "")
    )
