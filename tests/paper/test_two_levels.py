"""A run of em-hrnn with two levels: what needs one level says so, and does not ask for em-hrnn."""

from pathlib import Path

import pytest

from emhrnn.api import load, train
from emhrnn.cli.evaluate import change_segmentation
from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import read
from emhrnn.paper.faithfulness.attributions import Subject
from emhrnn.training.config import make_config
from tests.behaviour.commands import GOOD, TINY, Cli, write_reviews


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two-levels")
    settings = [assignment for assignment in TINY if assignment != "--set"]
    config = make_config(assignments=[*settings, "model.levels=2", "training.epochs=2"])
    train(write_reviews(folder / "reviews.csv", 12), folder / "run", config=config, progress=False)
    return folder / "run"


def test_the_name_tells_the_levels(two: Path, run: Path) -> None:
    assert load(two).run.told_model == "em-hrnn of 2 levels"
    assert load(run).run.told_model == "em-hrnn"


def test_faithfulness(cli: Cli, two: Path, made: Path, tmp_path: Path) -> None:
    pytest.importorskip("captum", reason="needs the extra analysis")
    message = cli.error("paper", "faithfulness", two, made / "test.jsonl", "--out", tmp_path / "out")
    assert f"{two} is a run of em-hrnn of 2 levels; faithfulness needs em-hrnn with one level" in message
    run = load(two).run
    with pytest.raises(ConfigError, match="this is a run of em-hrnn of 2 levels; faithfulness needs em-hrnn with one"):
        Subject.of(run, read(run, [GOOD]))


def test_export(cli: Cli, two: Path, tmp_path: Path) -> None:
    message = cli.error("export", two, "--onnx", tmp_path / "out")
    assert "this run is em-hrnn of 2 levels; only em-hrnn with one level and learned boundaries" in message
    assert not (tmp_path / "out").exists()


def test_thorough_effects(cli: Cli, two: Path) -> None:
    message = cli.error("explain", two, GOOD, "--thorough")
    assert "em-hrnn of 2 levels has no second pass" in message
    assert "thorough needs em-hrnn" in message


def test_another_segmentation(two: Path) -> None:
    with pytest.raises(ConfigError, match=r"em-hrnn of 2 levels .*--segmentation"):
        change_segmentation(load(two).run, "words")


def test_a_threshold(two: Path) -> None:
    pytest.importorskip("fastapi", reason="needs the extra serve")
    from fastapi.testclient import TestClient

    from emhrnn.serve.app import application

    with TestClient(application([two]), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/explain", json={"text": GOOD, "threshold": 0.5})
        assert answer.status_code == 422
        assert answer.json()["error"] == (
            "em-hrnn of 2 levels has no threshold for the ends of phrases; "
            "leave it out, or serve em-hrnn with one level"
        )
