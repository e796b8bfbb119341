"""Running sums of an epoch, the view that shows them, and the epoch's line of the history."""

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from emhrnn.evaluation.scores import Scores
from emhrnn.training.config import Config
from emhrnn.training.history import Epoch
from emhrnn.training.live import Lines, Moment, Terminal, View
from emhrnn.training.loop import Step
from emhrnn.training.schedule import phase_name


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

    def means(self) -> dict[str, float]:
        return {name: self.notes[name] / self.noted[name] for name in sorted(self.notes)}


class Meter:
    """Running sums of an epoch, and the view that shows them."""

    def __init__(self, config: Config, *, show: bool) -> None:
        self.config = config
        self.show = show
        self.sums = Sums()
        self.past: list[Epoch] = []
        self.began = 0.0
        self.besides = 0.0  # seconds that the last epoch took besides its steps: validation, mostly
        self.view: View = Lines(config.training.epochs, show=False)

    def __enter__(self) -> "Meter":
        self.began += time.perf_counter()
        self.view = make_view(self.config, self.past, self.show)
        self.view.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.view.__exit__()

    def state(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"sums": asdict(self.sums), "elapsed": time.perf_counter() - self.began}

    def load_state(self, state: dict[str, Any], past: Sequence[Epoch] = ()) -> None:
        """Before the block is entered."""
        self.sums, self.began, self.past = Sums(**state["sums"]), -state["elapsed"], list(past)

    def add(self, step: Step) -> None:
        self.sums.add(step)
        self.view.step(self.moment(step))

    def moment(self, step: Step) -> Moment:
        sums, epochs, done = self.sums, self.config.training.epochs, step.batch + 1
        per_batch, name = sums.seconds / done, phase_name(self.config, step.epoch)
        epoch_left = per_batch * (step.batches - done) + self.besides
        return Moment(
            epoch=step.epoch,
            epochs=epochs,
            phase=name,
            done=done,
            batches=step.batches,
            loss=sums.loss / sums.documents,
            words_per_second=sums.words / sums.seconds,
            boundary_rate=sums.means().get("boundary_rate"),
            epoch_left=epoch_left,
            run_left=epoch_left + (epochs - step.epoch - 1) * (per_batch * step.batches + self.besides),
            slower_to_come=name != phase_name(self.config, epochs - 1),
        )

    def end_epoch(self, last: Step, scores: Scores, is_best: bool, boundaries: dict[str, float]) -> Epoch:
        sums = self.sums
        notes = sums.means() | boundaries
        if scores.phrases is not None:
            notes["valid_mean_phrase"] = scores.phrases.mean
            notes["valid_longest_phrase"] = float(scores.phrases.longest)
        now = time.perf_counter()
        epoch = Epoch(
            epoch=last.epoch,
            phase=phase_name(self.config, last.epoch),
            train_loss=sums.loss / sums.documents,
            learning_rate=last.learning_rate,
            valid=scores.metrics(),
            words_per_second=sums.words / sums.seconds,
            seconds=now - self.began,
            waiting=sums.waited / sums.seconds,
            boundaries=notes,
            best=is_best,
        )
        self.past.append(epoch)
        self.view.epoch(self.past)
        self.besides = max(epoch.seconds - sums.seconds, 0.0)
        self.sums, self.began = Sums(), now
        return epoch


def make_view(config: Config, past: Sequence[Epoch], show: bool) -> View:
    epochs = config.training.epochs
    if not (show and sys.stderr.isatty()):
        return Lines(epochs, show=show)
    view = Terminal(epochs, config.training.metric, past)
    return Lines(epochs) if view.console.is_dumb_terminal else view
