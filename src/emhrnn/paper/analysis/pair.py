"""The two runs that Table 3 compares: given, or trained here on the same data with the same settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emhrnn.corpus import Columns
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.files import sha256
from emhrnn.paper.job_records import Job
from emhrnn.paper.jobs import run_jobs
from emhrnn.paper.training_job import RUN, train_or_resume
from emhrnn.training.config import make_config, validated
from emhrnn.training.data import Named, checksum
from emhrnn.training.run import read_description

EM, MHS = "em-hrnn", "mhs-rnn-att"


@dataclass(frozen=True)
class Pair:
    """Runs that are there, or data to train them on."""

    em: Path | None = None
    mhs: Path | None = None
    train: Path | None = None
    vectors: Path | None = None
    preset: str = "default"
    assignments: Sequence[str] = ()
    text_column: str | None = None
    label_column: str | None = None

    def folders(
        self, work: Path, *, processes: int = 1, progress: bool = True, say: Callable[[str], None] = print
    ) -> tuple[Path, Path]:
        """EM-HRNN's and MHS-RNN's. What was trained before is not trained again.

        Raises:
            ConfigError: neither runs nor data are given, or both.
        """
        if (self.em is None) != (self.mhs is None):
            raise ConfigError(
                "one run was given; give both, --em RUN and --mhs RUN, or data to train both with --train"
            )
        if self.em is not None and self.mhs is not None:
            if self.train is not None:
                raise ConfigError("runs and data to train them were given; give one of them")
            return self.em, self.mhs
        if self.train is None:
            raise ConfigError("no runs; give --em RUN and --mhs RUN, or data to train both with --train FILE")
        jobs = [self._job(name, self.train) for name in (EM, MHS)]
        outcomes = run_jobs(train_job, jobs, work, processes=processes, progress=progress, say=say)
        for outcome in outcomes:
            if outcome.error is not None:
                raise TrainingError(f"{outcome.name} could not be trained: {outcome.error}")
        return work / EM / RUN, work / MHS / RUN

    def _job(self, name: str, data: Path) -> Job:
        config = make_config(self.preset, None, [f"model.name={name}", *self.assignments])
        return Job(
            name,
            {
                "sha256": checksum(data),
                "vectors_sha256": None if self.vectors is None else sha256(self.vectors),
                "columns": {"text": self.text_column, "label": self.label_column},
                "settings": config.model_dump(exclude_unset=True),
            },
            {
                "data": str(data.resolve()),
                "vectors": None if self.vectors is None else str(self.vectors.resolve()),
            },
        )


def check_models(folders: tuple[Path, Path]) -> None:
    """Raise a ConfigError unless they are runs of EM-HRNN and MHS-RNN, whose names will stand above what is shown."""
    for folder, wanted in zip(folders, (EM, MHS), strict=True):
        found = read_description(folder)["config"]["model"]["name"]
        if found != wanted:
            raise ConfigError(f"{folder} is a run of {found}, not of {wanted}; `emhrnn paper analyse` compares any two")


def train_job(arguments: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Train, or go on training, the run in the job's folder."""
    data = Named(path=Path(arguments["data"]), columns=Columns(**arguments["columns"]))
    trained = train_or_resume(folder, data, validated(arguments["settings"]), vectors=arguments["vectors"])
    return {"valid_accuracy": trained.fitted.scores.accuracy, "epochs": len(trained.fitted.epochs)}
