"""A run is never lost because nobody can say which commit made it."""

import subprocess

import pytest

from emhrnn.paper.reports import commit, told_command, training_code
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
    assert training_code("HEAD") == "unknown"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["a=/x/y/r.csv", "--out", "/x/c"], "a=r.csv --out c"),
        (["--models", "w/o pairs=tfidf-lr,em-hrnn"], "--models 'w/o pairs=tfidf-lr,em-hrnn'"),
        (["--models=a/b=hn-att"], "--models=a/b=hn-att"),
        (["--models", "t=transformer[model.pretrained=/x/bert]"], "--models 't=transformer[model.pretrained=bert]'"),
        (["--reference", "w/o pairs", "--report"], "--reference 'w/o pairs'"),
    ],
)
def test_the_command_is_told_without_folders(given: list[str], told: str) -> None:
    assert told_command(["compare", *given]) == f"emhrnn compare {told}"
