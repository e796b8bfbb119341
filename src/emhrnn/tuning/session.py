"""A session: this process, and those it starts, take part in a study until time or trials run out."""

import multiprocessing
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch

from emhrnn.errors import DataError, TrainingError
from emhrnn.text import read_vectors
from emhrnn.training.config import Config
from emhrnn.training.data import Named, checksum
from emhrnn.training.train import check_settings
from emhrnn.tuning import report
from emhrnn.tuning.display import Display
from emhrnn.tuning.material import Material, gather
from emhrnn.tuning.place import Place
from emhrnn.tuning.report import TrialRow
from emhrnn.tuning.search import Plan, Search, best_of

FEW = 4  # trials: with fewer, chance decides


@dataclass(frozen=True)
class Tuned:
    """What a study came to so far."""

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

    def told(self) -> str:
        """For the terminal."""
        best = self.best
        wide, wider = (max(len(change[part]) for change in self.changes) for part in (0, 1))
        lines = [
            f"Best of {len(self.rows)}: trial {best.number}, {self.metric} {best.value:.4f} on the validation data "
            f"({best.state}, {best.epochs} epochs).",
            *(
                f"  {name:<{wide}}  {value:<{wider}}  {'as it was' if value == before else f'was {before}'}"
                for name, value, before in self.changes
            ),
        ]
        if self.importances:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in list(self.importances.items())[:5])
            lines.append(f"What mattered most among the trials (fANOVA; a hint, not a proof): {shares}.")
        if best.epochs and len(self.rows) < FEW and any("cut" in row.state for row in self.rows):
            lines.append(
                f"Too few trials to call it a search: an epoch of the best took {best.seconds / best.epochs:.0f} s. "
                "Give more --minutes (the same command goes on), or fewer epochs (--set training.epochs=3) or fewer "
                "documents with another --out."
            )
        if self.missing:
            lines.append(f"{self.missing} values of the grid have no result yet; the same command goes on with them.")
        return "\n".join(lines)


@dataclass(frozen=True)
class Session:
    plan: Plan
    data: Named
    valid: Named | None
    vectors: Path | None

    def run(self, processes: int, threads: int, *, progress: bool) -> Tuned:
        """Take part with so many processes of so many threads each, and say what came out."""
        place = Place(self.plan.out)
        context = multiprocessing.get_context("spawn")  # a fork would copy the state of torch's threads
        others = [context.Process(target=_help, args=(self, threads)) for _ in range(processes - 1)]
        if others:
            torch.set_num_threads(threads)
        try:
            search, material = self._enter(place, progress=progress)
            for process in others:
                process.start()
            with Display(search.study, self.plan, show=progress) as display:
                search.work(material, display.refresh, self._saving(search, display.ended))
                for process in others:
                    process.join()
        finally:
            _end(others)
            place.leave()
        return self._tuned(search)

    def _enter(self, place: Place, *, progress: bool) -> tuple[Search, Material]:
        """Join the study, one process after the other: the first founds it and prepares the data."""
        with place.locked():
            place.join(self._description())
            vectors = None if self.vectors is None else read_vectors(self.vectors)
            check_settings(self.plan.config, vectors)
            material = gather(self.plan.out, self.data, self.valid, self.plan.config, vectors, progress=progress)
            search = Search(self.plan, place)
            search.begin()
        return search, material

    def help(self) -> None:
        """Take part in silence, as long as the process that started this one lives."""
        place = Place(self.plan.out)
        try:
            search, material = self._enter(place, progress=False)
            search.work(material, _leave_with_parent, self._saving(search, lambda _: None))
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


def _help(session: Session, threads: int) -> None:
    """What the other processes run."""
    torch.set_num_threads(max(1, threads))
    try:
        session.help()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # the same would stop the first process, which says more
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
        return f"no trial came to a score, the last because {notes[-1]}; try smaller learning rates with --vary"
    return (
        "the time was too short for one epoch of one trial; give more with --minutes (the same command goes on with "
        f"{out}), or less data to another --out"
    )
