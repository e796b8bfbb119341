"""What is recorded and shown of training: history.jsonl, three lines that renew themselves in a terminal (a line per
epoch anywhere else), TensorBoard, and the callbacks of whoever started it.

epoch 3/12  em  ━━━━━━━━━━━━━━━━━━━━━━━━╺━━━━━━━━━━━━━━━━━━  58 %  0:12 left, run 2:10
loss 0.4121   15,231 words/s   boundaries 0.23
valid accuracy 0.8440   best 0.8510 (epoch 2)   ▁▅█▇
"""

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from emhrnn.errors import CheckpointError, ConfigError
from emhrnn.evaluation.calibration import Calibration
from emhrnn.evaluation.scores import Scores
from emhrnn.files import write_text
from emhrnn.training.config import Config
from emhrnn.training.distributed import ALONE, Processes
from emhrnn.training.schedule import Best, phase_name


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


@dataclass(frozen=True, eq=False)
class TrainingContext:
    """Who takes part in a training, and who is told about it."""

    progress: bool = True  # a live view in a terminal, else a line per epoch, on stderr
    on_epoch: Callable[[Epoch], None] | None = None
    on_step: Callable[[Step], None] | None = None
    say: Callable[[str], None] = print  # takes remarks, such as about damaged checkpoints
    job: Processes = ALONE


def write_history(path: Path, epochs: list[Epoch]) -> None:
    """All of it, in place of what is there."""
    write_text(path, "".join(map(_line, epochs)))


def append_history(path: Path, epoch: Epoch) -> None:
    """One more line, on disk when this returns."""
    with path.open("a", encoding="utf-8") as file:
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
        return [Epoch(**json.loads(line)) for line in lines if line]
    except (OSError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error}); copy the run again or train anew") from None


_Told = TypeVar("_Told")
EVERY = 10  # steps between points of the training loss in TensorBoard
BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=#"
SHOWN = 40  # epochs in the sparkline


@dataclass(frozen=True)
class Moment:
    """Where training stands."""

    epoch: int
    epochs: int
    phase: str
    done: int  # batches of this epoch
    batches: int
    loss: float
    words_per_second: float
    boundary_rate: float | None
    epoch_left: float  # seconds
    run_left: float  # seconds, if early stopping does not cut it short
    slower_to_come: bool  # a later phase takes longer than what the estimate is made from


class Lines:
    """A line when an epoch is done, for pipes and files; or nothing at all. Entered when training begins, left when it
    ends, in whatever way."""

    def __init__(self, epochs: int, *, show: bool = True) -> None:
        self.epochs = epochs
        self.show = show

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass

    def step(self, moment: Moment) -> None:
        pass

    def epoch(self, past: Sequence[Epoch]) -> None:
        if self.show:
            sys.stderr.write(epoch_line(past[-1], self.epochs) + "\n")


class Terminal(Lines):
    """The line of every epoch that is done, and below them the one that is going on."""

    def __init__(self, epochs: int, metric: str, past: Sequence[Epoch], console: Console | None = None) -> None:
        super().__init__(epochs)
        self.metric = metric
        self.past = list(past)
        self.console = console or Console(stderr=True, highlight=False)
        self.moment: Moment | None = None
        # Drawn by a thread of its own four times a second, so that training never waits for the terminal. What is
        # printed to stdout is not ours to move: it may go to a file.
        self.live = Live(
            get_renderable=self.render, console=self.console, transient=True, redirect_stdout=False,
            vertical_overflow="crop",
        )  # fmt: skip

    def __enter__(self) -> None:
        self.live.start()

    def __exit__(self, *error: object) -> None:
        self.live.stop()  # takes the lines away, and gives the cursor back

    def step(self, moment: Moment) -> None:
        self.moment = moment

    def epoch(self, past: Sequence[Epoch]) -> None:
        self.past = list(past)
        self.console.print(Text(epoch_line(past[-1], self.epochs), no_wrap=True, overflow="crop"))

    def render(self) -> Group:
        lines: list[RenderableType] = []
        if self.moment is not None:
            lines = [_bar_line(self.moment), Text(_numbers(self.moment), no_wrap=True, overflow="ellipsis")]
        if self.past:
            lines.append(self._validation())
        return Group(*lines)

    def _validation(self) -> Text:
        values = [epoch.valid[self.metric] for epoch in self.past]
        best = max(epoch.epoch for epoch in self.past if epoch.best)
        unicode = (self.console.encoding or "").lower().startswith("utf")
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"valid {self.metric} {values[-1]:.4f}   best {values[best]:.4f} (epoch {best + 1})   ")
        return text.append(sparkline(values[-SHOWN:], BARS if unicode else ASCII_BARS), "cyan")


def sparkline(values: Sequence[float], bars: str = BARS) -> str:
    """One character per value, from the lowest bar for the least to the highest for the greatest."""
    low, high = min(values), max(values)
    if high == low:
        return bars[0] * len(values)
    return "".join(bars[min(int((value - low) / (high - low) * len(bars)), len(bars) - 1)] for value in values)


def clock(seconds: float) -> str:
    """7 -> 0:07, 3725 -> 1:02:05"""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def epoch_line(epoch: Epoch, epochs: int) -> str:
    """An epoch of so many, in one line."""
    rate = epoch.boundaries.get("boundary_rate")
    return (
        f"epoch {epoch.epoch + 1:>3}/{epochs}  {epoch.phase:<9}  loss {epoch.train_loss:.4f}  "
        f"valid accuracy {epoch.valid['accuracy']:.4f}  loss {epoch.valid['loss']:.4f}  "
        f"{epoch.words_per_second:>9,.0f} words/s"
        + (f"  boundaries {rate:.2f}" if rate is not None else "")
        + ("  best" if epoch.best else "")
    )


def _bar_line(now: Moment) -> Table:
    line = Table.grid(padding=(0, 2), expand=False)
    if now.done == now.batches:
        left = "validating"
    else:
        left = f"{clock(now.epoch_left)} left, run {'over ' if now.slower_to_come else ''}{clock(now.run_left)}"
    line.add_row(
        Text(f"epoch {now.epoch + 1}/{now.epochs}", "bold", no_wrap=True),
        Text(now.phase, no_wrap=True),
        ProgressBar(total=now.batches, completed=now.done, width=30),
        Text(f"{now.done / now.batches:4.0%}", no_wrap=True),
        Text(left, no_wrap=True),
    )
    return line


def _numbers(now: Moment) -> str:
    rate = "" if now.boundary_rate is None else f"   boundaries {now.boundary_rate:.2f}"
    return f"loss {now.loss:.4f}   {now.words_per_second:,.0f} words/s{rate}"


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
        self.view = Lines(config.training.epochs, show=False)

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


def make_view(config: Config, past: Sequence[Epoch], show: bool) -> Lines:
    """Live in a terminal; lines elsewhere, or nothing."""
    epochs = config.training.epochs
    if not (show and sys.stderr.isatty()):
        return Lines(epochs, show=show)
    view = Terminal(epochs, config.training.metric, past)
    return Lines(epochs) if view.console.is_dumb_terminal else view


class TensorBoard:
    """Numbers for `tensorboard --logdir RUN/tensorboard`: train with the context of `watching`, within the block.

    The x axis is the number of steps since the start, so that a resumed run goes on where it was.
    """

    def __init__(self, folder: Path) -> None:
        if importlib.util.find_spec("tensorboard") is None:
            raise ConfigError(
                "--tensorboard needs TensorBoard, which is not installed; leave it out, or install it with: "
                "pip install 'emhrnn[tensorboard]'"
            )
        self.folder = folder
        self._writer: Any = None  # a SummaryWriter
        self._last = 0

    def __enter__(self) -> "TensorBoard":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def watching(self, context: TrainingContext) -> TrainingContext:
        """The same context, with the calls that come here, too."""
        return replace(context, on_epoch=_both(self.epoch, context.on_epoch), on_step=_both(self.step, context.on_step))

    def step(self, step: Step) -> None:
        self._last = step.number
        if step.number % EVERY == 0:
            self._add("step/loss", step.notes.get("label_loss", step.loss))
            self._add("step/learning_rate", step.learning_rate)

    def epoch(self, epoch: Epoch) -> None:
        self._add("train/loss", epoch.train_loss)
        self._add("train/words_per_second", epoch.words_per_second)
        self._add("train/waiting", epoch.waiting)
        for name, value in epoch.valid.items():
            self._add(f"valid/{name}", value)
        for name, value in epoch.boundaries.items():
            self._add(f"boundaries/{name}", float(value))
        if self._writer is not None:
            self._writer.flush()

    def _add(self, name: str, value: float) -> None:
        """The files are made with the first number: before that, the place of the run must stay empty."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # What a killed run wrote after its last checkpoint is hidden: those steps are taken again.
            self._writer = SummaryWriter(str(self.folder), purge_step=self._last)
        self._writer.add_scalar(name, value, self._last)


def _both(one: Callable[[_Told], None], other: Callable[[_Told], None] | None) -> Callable[[_Told], None]:
    def call(told: _Told) -> None:
        one(told)
        if other is not None:
            other(told)

    return call
