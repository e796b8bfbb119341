"""Models other than em-hrnn: those that weigh words are explained, the others give their label alone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from emhrnn.api import train
from emhrnn.explain.page import percent
from emhrnn.models.table import explaining
from emhrnn.serve.app import application
from emhrnn.training.config import make_config
from tests.behaviour.commands import TINY, write_reviews

TEXT = "The soup was good. We hated it!"


@pytest.fixture(scope="module", params=["hn-att", "mhs-rnn-att", "lstm"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("served-model")
    settings = [setting for setting in TINY if setting != "--set"]
    config = make_config(assignments=[f"model.name={request.param}"], shared=settings)
    train(write_reviews(folder / "reviews.csv", 12), folder / "run", config=config, progress=False)
    with TestClient(application([folder / "run"], data=Path(folder)), base_url="http://127.0.0.1") as opened:
        yield opened


def test_what_it_can(client: TestClient) -> None:
    (fact,) = client.get("/v1/model").json()
    answer, page = client.post("/v1/explain", json={"text": TEXT}), client.post("/", data={"text": TEXT})
    if not fact["explains"]:
        assert fact["model"] == "lstm"
        assert answer.status_code == 422
        assert "has no weights of words and sentences to explain with" in answer.json()["error"]
        (told,) = client.post("/v1/predict", json={"text": TEXT}).json()["predictions"]
        for answered in (page, client.post("/part/read", data={"text": TEXT, "dropped": "0", "threshold": "0.5"})):
            assert answered.status_code == 200
            assert f'<h2 class="prediction">{told["label"]}</h2>' in answered.text
            for name, chance in told["probabilities"].items():
                assert f'<th scope="row">{name}</th>' in answered.text
                assert f'<td class="number">{percent(chance)}</td>' in answered.text
            assert f"These models can: {', '.join(explaining())}." in answered.text
        assert "Which label?" in page.text
        return
    (explanation,) = answer.json()["explanations"]
    assert sum(sentence["weight"] for sentence in explanation["sentences"]) == pytest.approx(1)
    assert page.status_code == 200
    assert explanation["decided_by"] == "estimate"
    listed = re.findall(r'<a href="#s\d+" data-k="\d+"><q dir="auto">(.*?)</q>', page.text)
    assert listed
    if fact["model"] == "hn-att":  # without phrases, words are listed, and a sentence has no tint of its own
        assert not any(" " in text for text in listed)
        assert re.findall(r'class="phrase ([af][1-5])"', page.text.partition("<ol")[2].partition("</ol>")[0]) == []
    refused = client.post("/v1/explain", json={"text": TEXT, "threshold": 0.5})
    assert refused.status_code == 422
    assert "has no threshold for the ends of phrases; leave it out" in refused.json()["error"]
    dropped = client.post("/", data={"text": TEXT, "dropped": "0"})
    assert "Without 1 phrase" in dropped.text


def test_names_are_refused_by_a_model_that_does_not_read_them(client: TestClient) -> None:
    for path in ("/v1/predict", "/v1/explain"):
        answer = client.post(path, json={"text": TEXT, "user": "ann"})
        assert answer.status_code == 422
        assert "does not read who wrote a text, or about what; leave users and products out" in answer.json()["error"]
    assert 'name="user"' not in client.get("/").text
