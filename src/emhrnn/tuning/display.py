"""The live table of trials on a terminal; elsewhere one line for each trial that has ended."""

import time
from types import TracebackType

import optuna
from rich.console import Console
from rich.live import Live

from emhrnn.tuning.report import brief, clock, row_of, rows_of, table_of
from emhrnn.tuning.search import Plan, best_of

EVERY = 1.0  # seconds


class Display:
    def __init__(self, study: optuna.Study, plan: Plan, *, show: bool) -> None:
        self.study, self.plan, self.show = study, plan, show
        self.console = Console(stderr=True)
        self.live = Live(console=self.console, auto_refresh=False) if show and self.console.is_terminal else None
        self._last = 0.0

    def __enter__(self) -> "Display":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.live is not None:
            self.refresh(now=True)
            self.live.stop()

    def refresh(self, *, now: bool = False) -> None:
        if self.live is None or (not now and time.monotonic() < self._last + EVERY):
            return
        self._last = time.monotonic()
        best = best_of(self.study)
        number, rows = None if best is None else best.number, rows_of(self.study, self.plan)
        self.live.update(table_of(rows, self.plan, number, self.console.width), refresh=True)

    def ended(self, number: int) -> None:
        self.refresh(now=True)
        if self.live is not None or not self.show:
            return
        row, best = row_of(self.study.trials[number], self.plan), best_of(self.study)
        value = "no score" if row.value is None else f"{self.plan.config.training.metric} {row.value:.4f}"
        leader = " (best)" if best is not None and best.number == number else ""
        told = f"trial {number}: {value}{leader}, {row.state}, {row.epochs} epochs, {clock(row.seconds)}"
        self.console.print(f"{told}: {brief(row.settings)}", markup=False, highlight=False, soft_wrap=True)
