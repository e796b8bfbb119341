"""Words and labels that change are reported, those that do not are not, and chance is allowed for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emhrnn
from emhrnn.drift import divergence, stability, training_words
from tests.behaviour.commands import Cli, rows, write_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drift")
    emhrnn.train(write_rows(folder / "a.csv", rows(100)), folder / "run", progress=False)
    return folder


def test_the_training_data_has_not_drifted(cli: Cli, folder: Path) -> None:
    facts: Any = cli.ok("drift", folder / "run", folder / "a.csv", "--json").json
    assert facts["drifted"] == []
    assert facts["documents"] == 100
    assert facts["classes"]["good"] == [pytest.approx(0.5, abs=0.02), pytest.approx(0.5, abs=0.1)]


def test_other_words_and_labels_have(cli: Cli, folder: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "b.csv", [(f"We liked the lovely room. Number {i}", "x") for i in range(60)])
    facts: Any = cli.ok("drift", folder / "run", data, "--json").json
    assert facts["drifted"] == ["words", "labels"]
    changed = {change["word"]: (change["before"], change["now"]) for change in facts["changed"]}
    assert changed["soup"] == (pytest.approx(1.0), 0.0)
    assert cli.ok("drift", folder / "run", data).out.count("DRIFT") == 2


def test_the_counts_are_those_of_the_training_documents(folder: Path) -> None:
    run = emhrnn.load(folder / "run").run
    shares = training_words(run)
    assert shares is not None
    place = {word: i for i, word in enumerate(run.vocabulary.words)}
    assert shares[place["soup"]] == pytest.approx(1.0)
    assert shares[place["liked"]] == pytest.approx(0.5, abs=0.02)


def test_a_model_without_counts_compares_labels(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = write_rows(tmp_path / "b.csv", rows(40))
    assert "words   not known" in cli.ok("drift", run, data).out
    few = write_rows(tmp_path / "few.csv", rows(5))
    assert "30 or more" in cli.error("drift", run, few)


def test_the_figures() -> None:
    one, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert divergence(one, one).sum() == 0
    assert divergence(one, other).sum() == pytest.approx(1.0)
    assert stability(np.array([0.5, 0.5]), np.array([0.6, 0.4])) == pytest.approx(
        0.1 * np.log(0.6 / 0.5) - 0.1 * np.log(0.4 / 0.5)
    )
