"""A run is never lost because nobody can say which commit made it."""

import subprocess

import pytest

from emhrnn.paper.provenance import commit
from emhrnn.version import __version__


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError("git"), subprocess.CalledProcessError(128, "git"), subprocess.TimeoutExpired("git", 10)],
    ids=["no git", "no checkout", "too slow"],
)
def test_without_an_answer_of_git_the_version_is_told(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert commit() == f"version {__version__}"
