"""What tests of comparisons and simulations share."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from emhrnn.files import locked
from emhrnn.paper import jobs


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run here, one after the other: a process for each spends seconds on imports. test_jobs.py has processes."""

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
