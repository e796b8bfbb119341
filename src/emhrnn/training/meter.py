"""Running sums of an epoch, the bar that shows them, and the epoch's line of the history."""

import sys
import time
from dataclasses import dataclass, field

from tqdm import tqdm

from emhrnn.evaluation.scores import Scores
from emhrnn.training.history import Epoch
from emhrnn.training.loop import Step


@dataclass
class Meter:
    """Running sums of an epoch, and the bar that shows them."""

    epochs: int
    show: bool
    steps: list[Step] = field(default_factory=list)
    bar: "tqdm[None] | None" = None
    began: float = 0.0

    def __enter__(self) -> "Meter":
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
