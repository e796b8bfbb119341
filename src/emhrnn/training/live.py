"""What is shown of training: three lines that renew themselves in a terminal, a line per epoch anywhere else.

epoch 3/12  em  ━━━━━━━━━━━━━━━━━━━━━━━━╺━━━━━━━━━━━━━━━━━━  58 %  0:12 left, run 2:10
loss 0.4121   15,231 words/s   boundaries 0.23
valid accuracy 0.8440   best 0.8510 (epoch 2)   ▁▅█▇
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from emhrnn.training.history import Epoch

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


@runtime_checkable
class View(Protocol):
    """Entered when training begins, left when it ends, in whatever way."""

    def __enter__(self) -> object: ...

    def __exit__(self, *error: object) -> None: ...

    def step(self, moment: Moment) -> None: ...

    def epoch(self, past: Sequence[Epoch]) -> None:
        """An epoch is done, the last of the past ones."""


class Lines:
    """A line when an epoch is done, for pipes and files; or nothing at all."""

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


class Terminal:
    """The line of every epoch that is done, and below them the one that is going on."""

    def __init__(self, epochs: int, metric: str, past: Sequence[Epoch], console: Console | None = None) -> None:
        self.epochs = epochs
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
