"""Which files a name stands for."""

from pathlib import Path

import pytest

from emhrnn.corpus.readers.files import data_files
from emhrnn.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.csv", "a.csv", "deep/er/c.csv", ".out.csv.1f.partial", ".hidden.csv", "_note.csv", "read.me"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("text,label\nGood.,good\n")
    return tmp_path


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["a.csv", "b.csv", "deep/er/c.csv"]),
        ("a.csv", ["a.csv"]),
        ("*", ["_note.csv", "a.csv", "b.csv", "read.me"]),
        ("[ab].csv", ["a.csv", "b.csv"]),
        (".h*", [".hidden.csv"]),
        ("**/*.csv", ["_note.csv", "a.csv", "b.csv", "deep/er/c.csv"]),
    ],
)
def test_patterns_are_those_of_a_shell(folder: Path, pattern: str, found: list[str]) -> None:
    """So what a killed run left half written is no data."""
    assert data_files(folder / pattern) == [folder / name for name in found]


def test_a_pattern_from_here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert data_files(Path("deep/*/*")) == [Path("deep/er/c.csv")]


@pytest.mark.parametrize(("name", "told"), [("x*", "no file matches .*; check the pattern"), ("x", "does not exist")])
def test_nothing_there(folder: Path, name: str, told: str) -> None:
    with pytest.raises(DataError, match=told):
        data_files(folder / name)
