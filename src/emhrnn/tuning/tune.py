"""`tune`: search for settings that do well on the validation data, in this process and those it starts."""

import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch

from emhrnn.cores import cores
from emhrnn.errors import ConfigError, DataError, TrainingError
from emhrnn.text import read_vectors
from emhrnn.training.config import Config
from emhrnn.training.data import Named, checksum
from emhrnn.training.train import check_settings
from emhrnn.tuning import report
from emhrnn.tuning.report import TrialDisplay, TrialRow
from emhrnn.tuning.space import PAPER_GRID, Varied, assignments_of, space_of, varied
from emhrnn.tuning.study import Search, SearchPlan, StudyFolder, best_of
from emhrnn.tuning.trial import StudyData, prepare_data

FEW = 4  # trials: with fewer, chance decides


def tune(
    data: Named,
    out: Path,
    *,
    config: Config,
    valid: Named | None = None,
    vectors: Path | None = None,
    vary: Sequence[str] = (),
    only: bool = False,
    fixed: Sequence[str] = (),
    paper: bool = False,
    minutes: float | None = 10.0,
    trials: int | None = None,
    processes: int = 1,
    progress: bool = True,
    command: str = "emhrnn tune",
) -> "Tuned":
    """Search, and leave the study, best.toml and trials.csv at `out`. The same call resumes a study.

    Args:
        vary: ranges in the notation of `--vary`, beside the model's own; with `only`, instead of them.
        fixed: names of settings that are not to vary.
        paper: run every learning rate of the paper's grid, whole, and nothing else.
        minutes: time limit, within a trial too; None for no limit.
        trials: limit for the whole study.
        processes: how many share the work, including this one.

    Raises:
        ConfigError, DataError: a setting, a range or the data cannot be used, or `out` holds another study.
        TrainingError: no trial came to a score.
    """
    deadline = float("inf") if minutes is None else time.time() + 60 * minutes
    most = cores()
    if processes > most:
        raise ConfigError(f"{processes} processes were asked for, {most} cores are there; give at most {most}")
    if paper and (vary or only or trials):
        raise ConfigError(
            "--paper varies the learning rate alone, over the whole grid; leave --vary, --only and --trials out"
        )
    check_settings(config)
    space = _space(config, assignments_of(vary), only=only, fixed=fixed, paper=paper)
    plan = SearchPlan(out, config, tuple(space), grid=paper, trials=trials, deadline=deadline, command=command)
    return _Session(plan, data, valid, vectors).run(processes, most // processes, progress=progress)


def _space(config: Config, given: dict[str, str], *, only: bool, fixed: Sequence[str], paper: bool) -> list[Varied]:
    if paper:
        return varied(PAPER_GRID, config.model.name)
    own = {} if only else {name: text for name, text in space_of(config).items() if name not in fixed}
    space = varied({**own, **given}, config.model.name)
    if not space:
        raise ConfigError("nothing varies; give a setting with --vary, e.g. training.learning_rate=0.001:0.01:log")
    return space


@dataclass(frozen=True)
class Tuned:
    """The results of a study so far."""

    best: TrialRow
    rows: list[TrialRow]
    changes: list[tuple[str, str, str]]  # name, best value, value before
    importances: dict[str, float]
    config: Config  # the best
    metric: str
    missing: int  # values of the grid that are still to be run

    def to_dict(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "best": self.best.to_dict(),
            "trials": len(self.rows),
            "importances": self.importances,
            "missing": self.missing,
        }

    def summary(self) -> str:
        """Text for the terminal."""
        best = self.best
        wide, wider = (max(len(change[part]) for change in self.changes) for part in (0, 1))
        lines = [
            f"Best of {len(self.rows)}: trial {best.number}, {self.metric} {best.value:.4f} on the validation data "
            f"({best.state}, {best.epochs} epochs).",
            *(
                f"  {name:<{wide}}  {value:<{wider}}  {'unchanged' if value == before else f'was {before}'}"
                for name, value, before in self.changes
            ),
        ]
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
            lines.append(f"{self.missing} values of the grid have no result yet; the same command runs them.")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Session:
    """This process, and those it starts, on one study."""

    plan: SearchPlan
    data: Named
    valid: Named | None
    vectors: Path | None

    def run(self, processes: int, threads: int, *, progress: bool) -> Tuned:
        """Search with this many processes of so many threads each."""
        place = StudyFolder(self.plan.out)
        context = multiprocessing.get_context("spawn")  # a fork would copy the state of torch's threads
        others = [context.Process(target=_help, args=(self, threads)) for _ in range(processes - 1)]
        if others:
            torch.set_num_threads(threads)
        try:
            search, data = self._enter(place, progress=progress)
            for process in others:
                process.start()
            with TrialDisplay(search.study, self.plan, show=progress) as display:
                search.work(data, display.refresh, self._saving(search, display.ended))
                for process in others:
                    process.join()
        finally:
            _end(others)
            place.leave()
        return self._tuned(search)

    def _enter(self, place: StudyFolder, *, progress: bool) -> tuple[Search, StudyData]:
        """Join the study, one process after the other: the first creates it and prepares the data."""
        with place.locked():
            place.join(self._description())
            vectors = None if self.vectors is None else read_vectors(self.vectors)
            check_settings(self.plan.config, vectors)
            data = prepare_data(self.plan.out, self.data, self.valid, self.plan.config, vectors, progress=progress)
            search = Search(self.plan, place)
            search.begin()
        return search, data

    def help(self) -> None:
        """Search without output, as long as the process that started this one lives."""
        place = StudyFolder(self.plan.out)
        try:
            search, data = self._enter(place, progress=False)
            search.work(data, _leave_with_parent, self._saving(search, lambda _: None))
        finally:
            place.leave()

    def _saving(self, search: Search, then: Callable[[int], None]) -> Callable[[int], None]:
        def done(number: int) -> None:
            report.save(search.study, self.plan)
            then(number)

        return done

    def _tuned(self, search: Search) -> Tuned:
        report.save(search.study, self.plan)
        rows, best = report.rows_of(search.study, self.plan), best_of(search.study)
        if best is None:
            raise TrainingError(_nothing(rows, self.plan.out))
        return Tuned(
            best=report.row_of(best, self.plan),
            rows=rows,
            changes=report.changes(best, self.plan),
            importances=report.importances(search.study, self.plan.config.training.seed),
            config=report.best_config(best, self.plan),
            metric=self.plan.config.training.metric,
            missing=search.missing(),
        )

    def _description(self) -> dict[str, Any]:
        settings = self.plan.config.model_dump(exclude={"training": {"threads"}})
        return {
            "data": _described(self.data),
            "validation data": None if self.valid is None else _described(self.valid),
            "vectors": None if self.vectors is None else _described(Named(path=self.vectors)),
            "settings": {f"{s}.{name}": value for s, values in settings.items() for name, value in values.items()},
            "space": {varied.name: str(varied) for varied in self.plan.space},
        }


def _help(session: _Session, threads: int) -> None:
    """What the other processes run."""
    torch.set_num_threads(max(1, threads))
    try:
        session.help()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # the first process fails likewise, and says more
        sys.exit(f"emhrnn: a process of the search ended early: {error}")


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        sys.exit(1)


def _end(processes: list[SpawnProcess]) -> None:
    for process in processes:
        if process.is_alive():
            process.terminate()
            process.join()


def _described(named: Named) -> dict[str, Any]:
    if not named.path.exists():
        raise DataError(f"{named.path} does not exist; check the name")
    return {"source": named.path.name, "sha256": checksum(named.path), "read_as": named.read_as()}


def _nothing(rows: list[TrialRow], out: Path) -> str:
    notes = [row.state.partition(", ")[2] for row in rows if row.state.startswith("pruned, ")]
    if notes:
        return f"no trial reached a score, the last because {notes[-1]}; try smaller learning rates with --vary"
    return (
        "the time was too short for one epoch of one trial; give more with --minutes (the same command resumes "
        f"{out}), or less data with another --out"
    )
