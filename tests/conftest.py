"""What holds for all tests, a tiny run that they may read, and the command line called in this process."""

import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from emhrnn.files import locked
from emhrnn.paper import jobs
from tests.back_ends import on_kernels
from tests.behaviour.commands import TINY, Cli, write_reviews

if TYPE_CHECKING:
    import torch

settings.register_profile("no clock", deadline=None)  # no test fails because the machine is busy
settings.load_profile("no clock")

# A test run that was started in the background ignores Ctrl-C, and so would every process under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=[True, False], ids=["native", "plain"])
def back_end(request: pytest.FixtureRequest) -> Iterator[bool]:
    """The test runs on the native kernels (True) and on their plain twin."""
    with on_kernels(request.param):
        yield request.param


@pytest.fixture(scope="module", params=["native", "plain", "float64"])
def dtype(request: pytest.FixtureRequest) -> "Iterator[torch.dtype]":
    """Single precision on both back ends, and double precision, which the twin takes."""
    import torch

    with on_kernels(request.param == "native"):
        yield torch.float64 if request.param == "float64" else torch.float32


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reviews.csv, test.jsonl and a run of a model that has learned almost nothing."""
    from emhrnn.api import train
    from emhrnn.training.config import make_config

    folder = tmp_path_factory.mktemp("made")
    write_reviews(folder / "reviews.csv", 24)
    write_reviews(folder / "test.jsonl", 8)
    config = make_config(assignments=[assignment for assignment in TINY if assignment != "--set"])
    train(folder / "reviews.csv", folder / "run", config=config, progress=False)
    return folder


@pytest.fixture
def run(made: Path) -> Path:
    """The run, to be read only."""
    return made / "run"


@pytest.fixture
def own_run(made: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be damaged."""
    return Path(shutil.copytree(made / "run", tmp_path / "own-run"))


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of the paper run here, one after the other: a process for each spends seconds on imports. test_jobs.py has
    processes."""

    def run_all(
        function: jobs.Function,
        todo: Sequence[jobs.JobSpec],
        folder: Path,
        how: jobs.HowToRun,
    ) -> None:
        for job in todo:
            own = jobs._begin(job, folder)
            with locked(own / jobs.LOCK):
                jobs._run(jobs._target(function), folder / f"{job.name}.json", own)
            if how.say is not None:
                how.say(job.name)

    monkeypatch.setattr(jobs, "_run_all", run_all)
