"""The results of a study: rows, then a live table for the terminal, trials.csv, and the best settings as TOML."""

import csv
import io
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from rich.live import Live
from rich.table import Table

from emhrnn.evaluation.scores import METRICS
from emhrnn.files import write_text
from emhrnn.training.config import Config, with_settings
from emhrnn.tuning.space import value_of
from emhrnn.tuning.study import BEST, TRIALS, SearchPlan, best_of

SHOWN = 12  # trials of the live table
ENOUGH = 6  # complete trials, to estimate importances
EVERY = 1.0  # seconds between two drawings of the live table
STATES = {
    TrialState.COMPLETE: "done", TrialState.PRUNED: "pruned", TrialState.RUNNING: "running",
    TrialState.FAIL: "stopped", TrialState.WAITING: "waiting",
}  # fmt: skip


@dataclass(frozen=True)
class TrialRow:
    """One trial as a row of the table."""

    number: int
    value: float | None  # of the validation metric; for a trial that did not end, of its best epoch
    settings: dict[str, Any]
    state: str
    epochs: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {"trial": self.number, "value": self.value, "state": self.state, "epochs": self.epochs,
                "seconds": round(self.seconds, 1), **self.settings}  # fmt: skip


def rows_of(study: optuna.Study, plan: SearchPlan) -> list[TrialRow]:
    """Every trial that has begun."""
    trials = study.get_trials(deepcopy=False)
    return [row_of(trial, plan) for trial in trials if trial.state != TrialState.WAITING]


def row_of(trial: FrozenTrial, plan: SearchPlan) -> TrialRow:
    """A trial in the units of the metric: Optuna maximises, so that a loss is stored with another sign."""
    sign = METRICS[plan.config.training.metric]
    value = trial.value if trial.state == TrialState.COMPLETE else None
    if value is None:
        value = max(trial.intermediate_values.values(), default=None)
    note = trial.user_attrs.get("note")
    return TrialRow(
        number=trial.number,
        value=None if value is None else sign * value,
        settings=dict(trial.params),
        state=STATES[trial.state] + (f", {note}" if note else ""),
        epochs=int(trial.user_attrs.get("epochs", 0)),
        seconds=_seconds(trial),
    )


def table_of(rows: list[TrialRow], plan: SearchPlan, best: int | None, width: int) -> Table:
    """The newest trials and the best one, a line each. Settings are cut at the width; trials.csv holds them all."""
    shown = [row for row in rows if row.number == best or row in rows[-SHOWN:]]
    left = "" if math.isinf(plan.deadline) else f", {clock(max(0.0, plan.deadline - time.time()))} left"
    table = Table(box=None, pad_edge=False, caption=f"{len(rows)} trials{left}", caption_justify="left")
    names = ["trial", plan.config.training.metric, "epochs", "time", "state"]
    lines = [_cells(row) for row in shown]
    for name in names:
        table.add_column(name, justify="left" if name == "state" else "right", no_wrap=True)
    table.add_column("settings", no_wrap=True)
    room = width - sum(max(map(len, column)) + 2 for column in zip(names, *lines, strict=True))
    for row, line in zip(shown, lines, strict=True):
        settings = brief(row.settings)
        cut = settings if len(settings) <= room else settings[: max(room - 1, 0)] + "…"
        table.add_row(*line, cut, style="bold" if row.number == best else None)
    return table


def _cells(row: TrialRow) -> list[str]:
    value = "" if row.value is None else f"{row.value:.4f}"
    return [str(row.number), value, str(row.epochs), clock(row.seconds), row.state]


def brief(settings: Mapping[str, Any]) -> str:
    """learning_rate 0.0031, dropout 0.2"""
    return ", ".join(f"{name.partition('.')[2]} {_short(value)}" for name, value in settings.items())


def clock(seconds: float) -> str:
    """`1:01` for 61 seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def importances(study: optuna.Study, seed: int) -> dict[str, float]:
    """The share of each setting in the variance between trials (fANOVA); empty for too few trials."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: share for name, share in shares.items() if share == share}  # NaN where it cannot tell


def save(study: optuna.Study, plan: SearchPlan) -> None:
    """Write best.toml and trials.csv."""
    rows = rows_of(study, plan)
    names = ["trial", "value", "state", "epochs", "seconds", *(varied.name for varied in plan.space)]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(row.to_dict() for row in rows)
    write_text(plan.out / TRIALS, text.getvalue())
    best = best_of(study)
    if best is not None:
        row = row_of(best, plan)
        said = (
            f"{plan.command}\n{plan.config.training.metric} {row.value:.4f} on the validation data: "
            f"trial {row.number} of {len(rows)}, {row.state}, {row.epochs} epochs"
        )
        write_text(plan.out / BEST, toml_of(best_config(best, plan), said))


def best_config(best: FrozenTrial, plan: SearchPlan) -> Config:
    """All settings of the best trial."""
    return with_settings(plan.config, best.params)


def toml_of(config: Config, comment: str) -> str:
    """A file for `--config`: every setting that was given."""
    lines = [f"# {line}" for line in comment.splitlines()]
    for section, values in config.model_dump(exclude_unset=True).items():
        given = {name: value for name, value in values.items() if value is not None}  # TOML has no null
        if given:
            lines += ["", f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in given.items())]
    return "\n".join(lines) + "\n"


def changes(best: FrozenTrial, plan: SearchPlan) -> list[tuple[str, str, str]]:
    """Name, best value and value before, of every setting that varied."""
    return [
        (name, _short(value), _short(value_of(plan.config, name))) for name, value in best.params.items()
    ]  # fmt: skip


def _seconds(trial: FrozenTrial) -> float:
    if trial.state == TrialState.RUNNING and trial.datetime_start is not None:
        return (datetime.now() - trial.datetime_start).total_seconds()
    return float(trial.user_attrs.get("seconds", 0.0))


def _toml(value: bool | int | float | str) -> str:
    return json.dumps(value, ensure_ascii=False)  # of these types, JSON's notation is TOML's


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class TrialDisplay:
    """The live table of trials on a terminal; elsewhere one line on stderr for each trial that has ended."""

    def __init__(self, study: optuna.Study, plan: SearchPlan, *, show: bool) -> None:
        self.study, self.plan, self.show = study, plan, show
        self.console = Console(stderr=True)
        self.live = Live(console=self.console, auto_refresh=False) if show and self.console.is_terminal else None
        self._last = 0.0

    def __enter__(self) -> "TrialDisplay":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.live is not None:
            self.refresh(now=True)
            self.live.stop()

    def refresh(self, *, now: bool = False) -> None:
        """Draw the table again, at most once a second unless `now`."""
        if self.live is None or (not now and time.monotonic() < self._last + EVERY):
            return
        self._last = time.monotonic()
        best = best_of(self.study)
        number, rows = None if best is None else best.number, rows_of(self.study, self.plan)
        self.live.update(table_of(rows, self.plan, number, self.console.width), refresh=True)

    def ended(self, number: int) -> None:
        """Show a trial that has ended."""
        self.refresh(now=True)
        if self.live is not None or not self.show:
            return
        row, best = row_of(self.study.trials[number], self.plan), best_of(self.study)
        value = "no score" if row.value is None else f"{self.plan.config.training.metric} {row.value:.4f}"
        leader = " (best)" if best is not None and best.number == number else ""
        told = f"trial {number}: {value}{leader}, {row.state}, {row.epochs} epochs, {clock(row.seconds)}"
        self.console.print(f"{told}: {brief(row.settings)}", markup=False, highlight=False, soft_wrap=True)
