"""Words and labels that change are reported, those that do not are not, and chance is allowed for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emhrnn
from emhrnn.drift import Watch, divergence, stability, training_words
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


def test_the_server_reports_the_drift_of_what_it_classified(folder: Path) -> None:
    pytest.importorskip("fastapi", reason="needs the extra: serve")
    from fastapi.testclient import TestClient

    from emhrnn.serve.app import application

    def metrics() -> dict[str, float]:
        lines = (line for line in client.get("/metrics").text.splitlines() if line.startswith("emhrnn_drift"))
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    with TestClient(application([folder / "run"]), base_url="http://127.0.0.1") as client:
        assert metrics() == {'emhrnn_drift_documents{run="run"}': 0.0}
        for new, drifted in (([text for text, _ in rows(100)], 0), (["We liked the lovely room."] * 250, 1)):
            assert client.post("/v1/predict", json={"texts": new}).status_code == 200
            client.post("/v1/predict", json={"text": new[0]})  # the model thread counts the texts after it has answered
            found = metrics()
            for of in ("words", "labels"):
                assert found[f'emhrnn_drifted{{of="{of}",run="run"}}'] == drifted
    assert found['emhrnn_drift_documents{run="run"}'] >= 351


def test_old_documents_fade(folder: Path) -> None:
    run = emhrnn.load(folder / "run").run
    watch = Watch(run, {}, window=50)
    batch = run.encoder.encode([text for text, _ in rows(40)])
    for _ in range(9):
        watch.add(batch, run.predict(batch).probabilities)
        assert watch.documents < 100
        assert watch.seen.max() <= watch.documents


def test_the_figures() -> None:
    one, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert divergence(one, one).sum() == 0
    assert divergence(one, other).sum() == pytest.approx(1.0)
    assert stability(np.array([0.5, 0.5]), np.array([0.6, 0.4])) == pytest.approx(
        0.1 * np.log(0.6 / 0.5) - 0.1 * np.log(0.4 / 0.5)
    )
