"""What a study came to: rows first, then a table for the terminal, a csv, and the best settings as a config file."""

import csv
import io
import json
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState
from rich.table import Table

from emhrnn.evaluation.scores import METRICS
from emhrnn.files import write_text
from emhrnn.training.config import Config
from emhrnn.tuning.place import BEST, TRIALS
from emhrnn.tuning.search import Plan, best_of
from emhrnn.tuning.varying import value_of, with_values

SHOWN = 12  # trials of the live table
ENOUGH = 6  # complete trials, to say what mattered
STATES = {
    TrialState.COMPLETE: "done", TrialState.PRUNED: "pruned", TrialState.RUNNING: "running",
    TrialState.FAIL: "stopped", TrialState.WAITING: "waiting",
}  # fmt: skip


@dataclass(frozen=True)
class TrialRow:
    number: int
    value: float | None  # of the validation metric; for a trial that did not end, of its best epoch
    settings: dict[str, Any]
    state: str
    epochs: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        return {"trial": self.number, "value": self.value, "state": self.state, "epochs": self.epochs,
                "seconds": round(self.seconds, 1), **self.settings}  # fmt: skip


def rows_of(study: optuna.Study, plan: Plan) -> list[TrialRow]:
    """Every trial that has begun."""
    trials = study.get_trials(deepcopy=False)
    return [row_of(trial, plan) for trial in trials if trial.state != TrialState.WAITING]


def row_of(trial: FrozenTrial, plan: Plan) -> TrialRow:
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


def table_of(rows: list[TrialRow], plan: Plan, best: int | None, width: int) -> Table:
    """The newest trials, a line each, the best one always among them. What of their settings does not fit into the
    width is in trials.csv."""
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
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def importances(study: optuna.Study, seed: int) -> dict[str, float]:
    """Share of each setting in what made the trials differ (fANOVA); empty where there is too little to tell."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: share for name, share in shares.items() if share == share}  # NaN where it cannot tell


def save(study: optuna.Study, plan: Plan) -> None:
    """best.toml and trials.csv as they stand."""
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


def best_config(best: FrozenTrial, plan: Plan) -> Config:
    return with_values(plan.config, best.params)


def toml_of(config: Config, comment: str) -> str:
    """A file for `--config`: everything that is not left to its default."""
    lines = [f"# {line}" for line in comment.splitlines()]
    for section, values in config.model_dump(exclude_unset=True).items():
        given = {name: value for name, value in values.items() if value is not None}  # TOML has no null
        if given:
            lines += ["", f"[{section}]", *(f"{name} = {_toml(value)}" for name, value in given.items())]
    return "\n".join(lines) + "\n"


def changes(best: FrozenTrial, plan: Plan) -> list[tuple[str, str, str]]:
    """Name, best value, and what it was before, of every setting that varied."""
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
