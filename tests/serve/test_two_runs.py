"""Two runs at once: requests name the one that answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from emhrnn.api import load, train
from emhrnn.serve.app import application
from emhrnn.training.config import make_config
from tests.behaviour.commands import GOOD


@pytest.fixture(scope="module")
def fitted(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fitted") / "fitted"
    train(made / "reviews.csv", folder, config=make_config(assignments=["model.name=tfidf-lr"]), progress=False)
    return folder


@pytest.fixture(scope="module")
def both(made: Path, fitted: Path) -> Iterator[TestClient]:
    with TestClient(application([made / "run", fitted]), base_url="http://127.0.0.1") as opened:
        yield opened


def test_the_named_run_predicts(both: TestClient, made: Path, fitted: Path) -> None:
    for name, folder in ((None, made / "run"), ("run", made / "run"), ("fitted", fitted)):
        (told,) = both.post("/v1/predict", json={"text": GOOD, "run": name}).json()["predictions"]
        expected = load(folder).predict_proba([GOOD])[0].tolist()
        assert list(told["probabilities"].values()) == pytest.approx(expected, abs=1e-6)


def test_the_named_run_explains(both: TestClient) -> None:
    assert both.post("/v1/explain", json={"text": GOOD, "run": "run"}).status_code == 200
    refused = both.post("/v1/explain", json={"text": GOOD, "run": "fitted"})
    assert "has no weights of words and sentences" in refused.json()["error"]


@pytest.mark.parametrize("path", ["/v1/predict", "/v1/explain"])
def test_a_run_that_is_not_served(both: TestClient, path: str) -> None:
    answer = both.post(path, json={"text": GOOD, "run": "other"})
    assert answer.status_code == 422
    told = "run 'other' is not served; give 'run' or 'fitted', or leave it out for the first one"
    assert answer.json()["error"] == told


def test_fitted_models_count_no_parameters(both: TestClient, made: Path) -> None:
    first, second = both.get("/v1/model").json()
    assert first["parameters"] == sum(p.numel() for p in load(made / "run").run.model.parameters())
    assert (second["model"], second["parameters"]) == ("tfidf-lr", None)


def test_folders_of_one_name_are_told_apart(made: Path, own_run: Path) -> None:
    namesake = own_run.rename(own_run.parent / "run")
    with TestClient(application([made / "run", namesake]), base_url="http://127.0.0.1") as client:
        names = [fact["name"] for fact in client.get("/v1/model").json()]
        assert names == [f"{made.name}/run", f"{namesake.parent.name}/run"]
        assert client.post("/v1/predict", json={"text": GOOD, "run": names[1]}).status_code == 200


def test_one_run_says_why_and_the_other_what(both: TestClient) -> None:
    page = both.post("/compare", data={"text": GOOD, "user": "ann"}).text
    assert page.count('<h2 class="prediction">') == 2
    assert page.count('<ol class="sentences">') == 1
    assert "tfidf-lr does not weigh words, so it cannot say why" in page
    assert "not the other run's" not in page  # it has no phrases
