"""Models that read who wrote a text: names in files, in requests and on pages, and the average user without one."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from emhrnn.api import Model, load, train
from emhrnn.errors import DataError
from emhrnn.serve.app import application
from emhrnn.serve.engine import ServedRun
from emhrnn.serve.jobs import FileJob
from emhrnn.serve.limits import ServerLimits

TEXT = "It was a meal."
AUTHORS = [("ann", "good"), ("bob", "bad")]
USERS = ["bob", "ann", "eve", "bob", "ann"]  # not in the order of training; eve is new
SETTINGS = {
    "training.epochs": 25, "training.batch_documents": 4, "training.learning_rate": 0.02,
    "model.word_size": 4, "model.id_size": 8, "model.tune_embedding": False,
}  # fmt: skip


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module", params=["cma", "basis-cust"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All texts say the same; those of ann are good, those of bob are bad."""
    folder = tmp_path_factory.mktemp("served-ids")
    rows = [{"text": TEXT, "label": label, "user": user, "product": "soup"} for user, label in AUTHORS] * 20
    train(write(folder / "train.jsonl", rows), folder / "run", settings={**SETTINGS, "model.name": request.param},
          progress=False)  # fmt: skip
    return folder / "run"


@pytest.fixture
def client(run: Path) -> Iterator[TestClient]:
    with TestClient(application([run]), base_url="http://127.0.0.1", raise_server_exceptions=False) as opened:
        yield opened


def read(model: Model, run: Path, file: Path) -> FileJob:
    served = ServedRun("run", run, model, ServerLimits())
    served.start()
    job = FileJob("key", file.name, file, served, ServerLimits(rows=40))
    job.run()
    served.stop()
    assert job.state == "done", job.trouble
    return job


def test_a_file_with_names(run: Path, tmp_path: Path) -> None:
    rows = [{"text": TEXT, "user": user, "product": "soup"} for user in USERS]
    model = load(run)
    job = read(model, run, write(tmp_path / "new.jsonl", rows))
    texts, products = [TEXT] * len(USERS), ["soup"] * len(USERS)
    assert [row.predicted for row in job.rows] == model.predict(texts, users=USERS, products=products)
    assert [row.predicted for row in job.rows if row.number != 3] == ["bad", "good", "bad", "good"]
    expected = model.predict_proba(texts, users=USERS, products=products).max(axis=1)
    assert [row.confidence for row in job.rows] == pytest.approx(expected.tolist(), abs=1e-6)


def test_a_file_without_names_is_of_the_average_user(run: Path, tmp_path: Path) -> None:
    model = load(run)
    job = read(model, run, write(tmp_path / "bare.jsonl", [{"text": TEXT}] * 3))
    expected = model.predict_proba([TEXT], users=[None], products=[None])[0].max()
    assert [row.confidence for row in job.rows] == pytest.approx([float(expected)] * 3, abs=1e-6)


def test_requests_without_names_are_of_the_average_user(client: TestClient, run: Path) -> None:
    answer = client.post("/v1/predict", json={"texts": [TEXT, "Soup?"]})
    assert answer.status_code == 200
    told = [list(prediction["probabilities"].values()) for prediction in answer.json()["predictions"]]
    nobody = [None, None]
    expected = load(run).predict_proba([TEXT, "Soup?"], users=nobody, products=nobody)
    for one, other in zip(told, expected.tolist(), strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def test_requests_with_names(client: TestClient, run: Path) -> None:
    texts, users, products = [TEXT, TEXT, "Soup?"], ["bob", "ann", None], ["soup", None, "soup"]
    asked = {"texts": texts, "users": users, "products": products}
    told = client.post("/v1/predict", json=asked).json()["predictions"]
    assert [prediction["label"] for prediction in told[:2]] == ["bad", "good"]
    expected = load(run).predict_proba(texts, users=users, products=products)
    got = [list(prediction["probabilities"].values()) for prediction in told]
    np.testing.assert_allclose(got, expected, atol=1e-6)
    of_one = [client.post("/v1/predict", json={"text": TEXT, "user": user}).json()["predictions"] for user in users[:2]]
    assert [told[0]["label"] for told in of_one] == ["bad", "good"]
    assert client.get("/v1/model").json()[0]["ids"] is True


def test_explanations_with_names(client: TestClient) -> None:
    answer = client.post("/v1/explain", json={"texts": [TEXT, TEXT], "users": ["bob", "ann"], "products": ["soup"] * 2})
    assert [tree["predicted"] for tree in answer.json()["explanations"]] == ["bad", "good"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"texts": [TEXT, TEXT], "users": ["ann"]}, "1 users for 2 texts; give one for each, or null"),
        ({"texts": [TEXT], "user": "ann"}, "texts go with users, a list; user is for a single text"),
        ({"text": TEXT, "products": ["soup"]}, "text goes with product; products is for a list of texts"),
    ],
)
def test_names_that_do_not_fit(client: TestClient, asked: dict[str, Any], told: str) -> None:
    answer = client.post("/v1/predict", json=asked)
    assert answer.status_code == 422
    assert told in answer.json()["error"]


def test_a_page_for_each_author(client: TestClient) -> None:
    for user, label in AUTHORS:
        page = client.post("/", data={"text": TEXT, "user": user, "product": "soup"}).text
        assert f'<h2 class="prediction">{label}</h2>' in page
        assert f'name="user" value="{user}"' in page
        assert "Training has not seen" not in page
    page = client.post("/part/read", data={"text": TEXT, "user": "<eve>"}).text
    assert 'Training has not seen <q dir="auto">&lt;eve&gt;</q>; it is read as the average.' in page


def test_the_page_behind_a_row_is_that_of_its_author(client: TestClient, tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", [{"text": TEXT, "user": user, "product": "soup"} for user, _ in AUTHORS])
    job = client.post("/corpus/upload?name=a.jsonl", content=file.read_bytes()).json()["job"]
    for _ in range(200):
        if client.get(f"{job}/state").json()["state"] == "done":
            break
        time.sleep(0.05)
    for row, (user, label) in enumerate(AUTHORS, start=1):
        page = client.get(f"/?job={job.rpartition('/')[2]}&row={row}").text
        assert f'<h2 class="prediction">{label}' in page
        assert f'name="user" value="{user}"' in page


def test_what_the_model_cannot_predict_is_told(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DataError("the text is odd; give another")

    monkeypatch.setattr(Model, "predict_proba", fail)
    answer = client.post("/v1/predict", json={"text": TEXT})
    assert answer.status_code == 422
    assert answer.json()["error"] == "the text is odd; give another"
