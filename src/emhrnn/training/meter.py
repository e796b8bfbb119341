"""Running sums of an epoch, the bar that shows them, and the epoch's line of the history."""

import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from tqdm import tqdm

from emhrnn.evaluation.scores import Scores
from emhrnn.training.history import Epoch
from emhrnn.training.loop import Step


@dataclass
class Sums:
    """Of the steps of the epoch so far."""

    documents: int = 0
    words: int = 0
    loss: float = 0.0  # times documents
    seconds: float = 0.0
    waited: float = 0.0
    notes: dict[str, float] = field(default_factory=dict)  # times words
    noted: dict[str, int] = field(default_factory=dict)  # words of the steps that have the note

    def add(self, step: Step) -> None:
        self.documents += step.documents
        self.words += step.words
        self.loss += step.notes.get("label_loss", step.loss) * step.documents
        self.seconds += step.seconds
        self.waited += step.waited
        for name, value in step.notes.items():
            self.notes[name] = self.notes.get(name, 0.0) + value * step.words
            self.noted[name] = self.noted.get(name, 0) + step.words


@dataclass
class Meter:
    """Running sums of an epoch, and the bar that shows them."""

    epochs: int
    show: bool
    sums: Sums = field(default_factory=Sums)
    bar: "tqdm[None] | None" = None
    began: float = 0.0

    def __enter__(self) -> "Meter":
        self.began += time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"sums": asdict(self.sums), "elapsed": time.perf_counter() - self.began}

    def load_state(self, state: dict[str, Any]) -> None:
        """Before the block is entered."""
        self.sums, self.began = Sums(**state["sums"]), -state["elapsed"]

    def add(self, step: Step) -> None:
        self.sums.add(step)
        if self.bar is None:
            self.bar = tqdm(
                total=step.batches, desc=f"epoch {step.epoch + 1}/{self.epochs}", unit="batch", leave=False,
                disable=None if self.show else True, mininterval=0.2, initial=step.batch,
            )  # fmt: skip
        self.bar.update()
        if step.batch % 10 == 0:
            loss, speed = self.sums.loss / self.sums.documents, self.sums.words / self.sums.seconds
            self.bar.set_postfix(loss=f"{loss:.3f}", words_s=f"{speed:,.0f}", refresh=False)

    def end_epoch(self, last: Step, scores: Scores, phase: str, is_best: bool, boundaries: dict[str, float]) -> Epoch:
        sums = self.sums
        notes = boundaries | {name: sums.notes[name] / sums.noted[name] for name in sorted(sums.notes)}
        if scores.phrases is not None:
            notes["valid_mean_phrase"] = scores.phrases.mean
            notes["valid_longest_phrase"] = float(scores.phrases.longest)
        now = time.perf_counter()
        epoch = Epoch(
            epoch=last.epoch,
            phase=phase,
            train_loss=sums.loss / sums.documents,
            learning_rate=last.learning_rate,
            valid=scores.metrics(),
            words_per_second=sums.words / sums.seconds,
            seconds=now - self.began,
            waiting=sums.waited / sums.seconds,
            boundaries=notes,
            best=is_best,
        )
        if self.bar is not None:
            self.bar.close()
        if self.show:
            tqdm.write(_line(epoch, self.epochs), file=sys.stderr)
        self.sums, self.bar, self.began = Sums(), None, now
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
