"""What is recorded and shown of training: history.jsonl, a line per epoch and, in a terminal, a bar for the epoch that
is going on; TensorBoard, and the callbacks of whoever started it."""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from emhrnn.errors import CheckpointError, ConfigError
from emhrnn.evaluation.calibration import Calibration
from emhrnn.evaluation.scores import Scores
from emhrnn.extras import need
from emhrnn.files import from_json, named, write_text
from emhrnn.training.config import Config
from emhrnn.training.schedule import Best, phase_name

if TYPE_CHECKING:
    from emhrnn.training.distributed import Processes


@dataclass(frozen=True)
class Step:
    """One batch done."""

    number: int  # of steps before it, since the start
    epoch: int
    batch: int
    batches: int  # in this epoch
    loss: float
    learning_rate: float
    words: int
    documents: int
    seconds: float
    waited: float  # seconds of it spent on getting the batch
    notes: dict[str, float]

    @property
    def ends_epoch(self) -> bool:
        return self.batch + 1 == self.batches


@dataclass(frozen=True)
class Epoch:
    """What happened in an epoch: a line of history.jsonl."""

    epoch: int
    phase: str
    train_loss: float
    learning_rate: float
    valid: dict[str, float]  # accuracy, macro_f1, loss, ece
    words_per_second: float
    seconds: float
    waiting: float  # share of the time spent waiting for data
    boundaries: dict[str, float] = field(default_factory=dict)  # the degeneracy monitor
    best: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class FitResult:
    """What training came to."""

    epochs: list[Epoch]
    best: Best
    scores: Scores  # of the best epoch on the validation data
    calibration: Calibration | None = None  # fitted on the validation data, too


def _alone() -> "Processes":
    from emhrnn.training.distributed import ALONE  # which takes torch

    return ALONE


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """The processes of a training, and where its progress is reported."""

    progress: bool = True  # a live view in a terminal, else a line per epoch, on stderr
    on_epoch: Callable[[Epoch], None] | None = None
    on_step: Callable[[Step], None] | None = None
    say: Callable[[str], None] = print  # takes remarks, such as about damaged checkpoints
    job: "Processes" = field(default_factory=_alone)
    trackers: Sequence["Tracker"] = ()

    def step_done(self, step: Step) -> None:
        """Tell all who want to know."""
        for listen in (*(tracker.step for tracker in self.trackers), self.on_step):
            if listen is not None:
                listen(step)

    def epoch_done(self, epoch: Epoch) -> None:
        """Tell all who want to know."""
        for listen in (*(tracker.epoch for tracker in self.trackers), self.on_epoch):
            if listen is not None:
                listen(epoch)


def write_history(path: Path, epochs: list[Epoch]) -> None:
    """All of it, in place of what is there."""
    write_text(path, "".join(map(_line, epochs)))


def append_history(path: Path, epoch: Epoch) -> None:
    """One more line, on disk when this returns."""
    with named(path), path.open("a", encoding="utf-8") as file:
        file.write(_line(epoch))
        file.flush()
        os.fsync(file.fileno())


def _line(epoch: Epoch) -> str:
    return json.dumps(epoch.to_dict(), allow_nan=False) + "\n"


def read_history(path: Path) -> list[Epoch]:
    """The epochs that are done.

    Raises:
        CheckpointError: the file is missing or damaged.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [Epoch(**from_json(line)) for line in lines if line]
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); copy the run again or train again") from None


EVERY = 10  # steps between points of the training loss in TensorBoard


def clock(seconds: float) -> str:
    """7 -> 0:07, 3725 -> 1:02:05"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def epoch_line(epoch: Epoch, epochs: int) -> str:
    """An epoch of so many, in one line. `kept`: its weights are now those of the run, as the best so far; a warm-up is
    not compared with what follows."""
    rate = epoch.boundaries.get("boundary_rate")
    return (
        f"epoch {epoch.epoch + 1:>3}/{epochs}  {epoch.phase:<9}  loss {epoch.train_loss:.4f}  "
        f"valid accuracy {epoch.valid['accuracy']:.4f}  macro-F1 {epoch.valid['macro_f1']:.4f}  "
        f"loss {epoch.valid['loss']:.4f}  "
        f"{epoch.words_per_second:>9,.0f} words/s"
        + (f"  boundaries {rate:.2f}" if rate is not None else "")
        + ("  kept" if epoch.best else "")
    )


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
    """Running sums of an epoch, and the bar that shows them in a terminal."""

    def __init__(self, config: Config, rows: int, *, show: bool) -> None:
        self.config, self.rows, self.show = config, rows, show
        self.sums = Sums()
        self.began = 0.0
        self.bar: tqdm[None] | None = None

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
            name = f"epoch {step.epoch + 1}/{self.config.training.epochs} {phase_name(self.config, step.epoch)}"
            self.bar = tqdm(
                desc=name, total=step.batches, initial=step.batch, leave=False, dynamic_ncols=True,
                bar_format="{desc} {percentage:3.0f}% |{bar}| {remaining} left{postfix}",
                disable=None if self.show else True,  # None: in a terminal only
            )  # fmt: skip
        sums = self.sums
        done = f"{sums.documents:,} of {self.rows:,} rows"
        told = f"{done}, loss {sums.loss / sums.documents:.4f}, {sums.words / sums.seconds:,.0f} words/s"
        self.bar.set_postfix_str(told, refresh=False)
        self.bar.update()

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
        self.__exit__()
        if self.show:
            sys.stderr.write(epoch_line(epoch, self.config.training.epochs) + "\n")
        self.sums, self.began, self.bar = Sums(), now, None
        return epoch


class Tracker:
    """Sends the numbers of a training somewhere, which takes place within its block. For another service, override
    `write` and `close`.

    The x axis is the number of steps since the start, so that a resumed run continues where it was.
    """

    _last = 0

    def write(self, name: str, value: float, step: int) -> None:
        """Take one number, such as `valid/accuracy`."""
        raise NotImplementedError

    def close(self) -> None:
        """Training has ended, or failed."""

    def __enter__(self) -> "Tracker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def step(self, step: Step) -> None:
        """Every tenth step: loss and learning rate."""
        self._last = step.number
        if step.number % EVERY == 0:
            self.write("step/loss", step.notes.get("label_loss", step.loss), step.number)
            self.write("step/learning_rate", step.learning_rate, step.number)

    def epoch(self, epoch: Epoch) -> None:
        """The line of the history."""
        numbers = {"train/loss": epoch.train_loss, "train/words_per_second": epoch.words_per_second}
        numbers |= {"train/waiting": epoch.waiting, **{f"valid/{name}": value for name, value in epoch.valid.items()}}
        numbers |= {f"boundaries/{name}": float(value) for name, value in epoch.boundaries.items()}
        for name, value in numbers.items():
            self.write(name, value, self._last)


class TensorBoard(Tracker):
    """Numbers for `tensorboard --logdir RUN/tensorboard`."""

    def __init__(self, run: Path) -> None:
        need("tensorboard", "--log tensorboard", "tensorboard")
        self.folder = run / "tensorboard"
        self._writer: Any = None  # a SummaryWriter

    def write(self, name: str, value: float, step: int) -> None:
        """The files are made with the first number: before that, the place of the run must stay empty."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # What a killed run wrote after its last checkpoint is hidden: those steps are taken again.
            self._writer = SummaryWriter(str(self.folder), purge_step=step)
        self._writer.add_scalar(name, value, step)

    def epoch(self, epoch: Epoch) -> None:
        """The line of the history, on disk."""
        super().epoch(epoch)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class MLflow(Tracker):
    """Numbers for MLflow: the tracking server or folder of its own settings, such as MLFLOW_TRACKING_URI."""

    def __init__(self, run: Path) -> None:
        need("mlflow", "--log mlflow", "mlflow")
        self.library: Any = import_module("mlflow")
        self.name, self._begun = run.resolve().name, False

    def write(self, name: str, value: float, step: int) -> None:
        if not self._begun:
            self.library.start_run(run_name=self.name)
            self._begun = True
        self.library.log_metric(name, value, step=step)

    def close(self) -> None:
        if self._begun:
            self.library.end_run()


class WeightsAndBiases(Tracker):
    """Numbers for Weights & Biases, in the project of its own settings, such as WANDB_PROJECT and WANDB_MODE."""

    def __init__(self, run: Path) -> None:
        need("wandb", "--log wandb", "wandb")
        self.name = run.resolve().name
        self._run: Any = None

    def write(self, name: str, value: float, step: int) -> None:
        if self._run is None:
            self._run = import_module("wandb").init(name=self.name)
        self._run.log({name: value}, step=step)

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()


TRACKERS: dict[str, Callable[[Path], Tracker]] = {
    "tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WeightsAndBiases,
}  # fmt: skip


def tracker(name: str, run: Path) -> Tracker:
    """The tracker of a name, for the run at that folder.

    Raises:
        ConfigError: there is none of that name, or its library is not installed.
    """
    if name not in TRACKERS:
        raise ConfigError(f"cannot log to {name!r}; give tensorboard, mlflow or wandb, or in Python a Tracker")
    return TRACKERS[name](run)
