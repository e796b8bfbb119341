"""The results of a study: a row for each trial, trials.csv, and the best settings as TOML."""

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from emhrnn.evaluation.scores import METRICS
from emhrnn.files import write_text
from emhrnn.training.config import Config, with_settings
from emhrnn.training.progress import clock
from emhrnn.tuning.space import value_of

BEST, TRIALS = "best.toml", "trials.csv"
FEW = 4  # trials: with fewer, chance decides
ENOUGH = 6  # complete trials, to estimate importances
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


def row_of(trial: FrozenTrial, config: Config) -> TrialRow:
    """A trial in the units of the metric: Optuna maximises, so that a loss is stored with another sign."""
    value = trial.value if trial.state == TrialState.COMPLETE else None
    if value is None:
        value = max(trial.intermediate_values.values(), default=None)
    note = trial.user_attrs.get("note")
    return TrialRow(
        number=trial.number,
        value=None if value is None else METRICS[config.training.metric] * value,
        settings=dict(trial.params),
        state=STATES[trial.state] + (f", {note}" if note else ""),
        epochs=int(trial.user_attrs.get("epochs", 0)),
        seconds=float(trial.user_attrs.get("seconds", 0.0)),
    )


def rows_of(study: optuna.Study, config: Config) -> list[TrialRow]:
    """Every trial that has begun."""
    return [row_of(trial, config) for trial in study.trials if trial.state != TrialState.WAITING]


def best_of(study: optuna.Study) -> FrozenTrial | None:
    """The trial of the best value; of several, the first."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return max(complete, key=lambda trial: (trial.value, -trial.number), default=None)


@dataclass(frozen=True)
class Tuned:
    """The results of a study so far."""

    best: TrialRow
    rows: list[TrialRow]
    importances: dict[str, float]
    given: dict[str, Any]  # the value of each setting that varied, before the search
    config: Config  # the best
    missing: int  # values of the grid that are still to be run

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.config.training.metric,
            "best": self.best.to_dict(),
            "trials": len(self.rows),
            "importances": self.importances,
            "missing": self.missing,
        }

    def summary(self) -> str:
        """Text for the terminal."""
        best, wide = self.best, max(map(len, self.given))
        lines = [
            f"Best of {len(self.rows)}: trial {best.number}, {self.config.training.metric} {best.value:.4f} on the "
            f"validation data ({best.state}, {best.epochs} epochs)."
        ]
        for name, before in self.given.items():
            value = best.settings[name]
            was = "unchanged" if value == before else f"was {_short(before)}"
            lines.append(f"  {name:<{wide}}  {_short(value):<8}  {was}")
        if self.importances:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in list(self.importances.items())[:5])
            lines.append(f"Most important settings (fANOVA estimate): {shares}.")
        if best.epochs and len(self.rows) < FEW and any("cut" in row.state for row in self.rows):
            lines.append(
                f"Too few trials for a search: an epoch of the best trial took {best.seconds / best.epochs:.0f} s. "
                "Give more --minutes (the same command resumes), or fewer epochs (--set training.epochs=3) or fewer "
                "documents with another --out."
            )
        if self.missing:
            lines.append(f"{self.missing} values of the list have no result yet; the same command runs them.")
        return "\n".join(lines)


def tuned(study: optuna.Study, config: Config, missing: int) -> Tuned | None:
    """The results of a study; None where no trial came to a score."""
    best = best_of(study)
    if best is None:
        return None
    return Tuned(
        best=row_of(best, config),
        rows=rows_of(study, config),
        importances=importances(study, config.training.seed),
        given={name: value_of(config, name) for name in best.params},
        config=with_settings(config, best.params),
        missing=missing,
    )


def importances(study: optuna.Study, seed: int) -> dict[str, float]:
    """The share of each setting in the variance between trials (fANOVA); empty for too few trials."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(complete) < ENOUGH or len({trial.value for trial in complete}) < 2:
        return {}
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: share for name, share in shares.items() if share == share}  # NaN where it cannot tell


def save(study: optuna.Study, out: Path, config: Config, command: str) -> None:
    """Write best.toml and trials.csv."""
    rows = rows_of(study, config)
    names = dict.fromkeys(name for row in rows for name in row.to_dict())
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.to_dict() for row in rows)
    write_text(out / TRIALS, text.getvalue())
    if best := best_of(study):
        row = row_of(best, config)
        said = (
            f"{command}\n{config.training.metric} {row.value:.4f} on the validation data: "
            f"trial {row.number} of {len(rows)}, {row.state}, {row.epochs} epochs"
        )
        write_text(out / BEST, toml_of(with_settings(config, best.params), said))


def toml_of(config: Config, comment: str) -> str:
    """A file for `--config`: every setting that was given."""
    lines = [f"# {line}" for line in comment.splitlines()]
    for section, values in config.model_dump(exclude_unset=True).items():
        given = {name: value for name, value in values.items() if value is not None}  # TOML has no null
        if given:  # of these types, JSON's notation is TOML's
            written = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
            lines += ["", f"[{section}]", *written]
    return "\n".join(lines) + "\n"


def trial_line(study: optuna.Study, trial: FrozenTrial, config: Config) -> str:
    """A trial that has ended, in a line."""
    row, best = row_of(trial, config), best_of(study)
    value = "no score" if row.value is None else f"{config.training.metric} {row.value:.4f}"
    leader = " (best)" if best is not None and best.number == trial.number else ""
    settings = ", ".join(f"{name.partition('.')[2]} {_short(value)}" for name, value in row.settings.items())
    return f"trial {row.number}: {value}{leader}, {row.state}, {row.epochs} epochs, {clock(row.seconds)}: {settings}"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
