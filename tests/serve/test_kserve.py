"""The Open Inference Protocol, and what the description of the API says."""

import re
from html import unescape
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from emhrnn.serve.api import ExplainResponse
from tests.behaviour.commands import BAD, GOOD


def tensor(data: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    shape = [len(data)] if shape is None else shape
    return {"inputs": [{"name": "text", "shape": shape, "datatype": "BYTES", "data": data}]}


def test_it_answers_as_the_api_does(client: TestClient) -> None:
    answer = client.post("/v2/models/run/infer", json={"id": "a-1", **tensor([GOOD, BAD])}).json()
    told = client.post("/v1/predict", json={"texts": [GOOD, BAD]}).json()["predictions"]
    label, chances = answer["outputs"]
    assert (answer["model_name"], answer["id"]) == ("run", "a-1")
    assert label == {"name": "label", "shape": [2], "datatype": "BYTES", "data": [one["label"] for one in told]}
    assert chances["shape"] == [2, 2]
    assert chances["data"] == pytest.approx([chance for one in told for chance in one["probabilities"].values()])
    column = client.post("/v2/models/run/infer", json=tensor([[GOOD], [BAD]], [2, 1])).json()
    assert column["outputs"] == answer["outputs"]
    about = client.get("/v2/models/run").json()
    assert about["parameters"]["classes"] == client.get("/v1/model").json()[0]["classes"]
    assert [tensor["name"] for tensor in about["outputs"]] == ["label", "probabilities"]
    for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/run/ready"):
        assert client.get(path).json() == {"ready": True}


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("run", tensor([GOOD], [2]), "shape"),
        ("run", tensor([3]), "strings"),
        ("run", tensor([" "]), "no words"),
        ("run", tensor([GOOD] * 4), "at most 3"),
        ("run", tensor([GOOD], [1, 1, 1]), "shape"),
        ("run", {"inputs": []}, "inputs"),
        ("none", tensor([GOOD]), "not served"),
    ],
)
def test_what_is_refused(client: TestClient, path: str, body: dict[str, Any], told: str) -> None:
    answer = client.post(f"/v2/models/{path}/infer", json=body)
    assert answer.status_code == 422
    assert told in answer.json()["error"]


def test_explanations_are_as_described(client: TestClient) -> None:
    answer = client.post("/v1/explain", json={"text": GOOD}).json()
    read = ExplainResponse.model_validate(answer)
    assert read.explanations[0].sentences[0].phrases[0].words[0].text == GOOD.split()[0]
    given, typed = answer["explanations"][0], read.explanations[0].model_dump(exclude_unset=True)
    assert typed == given  # nothing is left out of the description


def test_the_description(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert schema["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}
    assert "security" not in schema  # this server has no token
    assert schema["components"]["schemas"]["PredictRequest"]["oneOf"] == [
        {"required": ["text"]},
        {"required": ["texts"]},
    ]


def test_the_python_samples_run(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As the reference shows them; those of the JavaScript call the same addresses."""
    page = unescape(httpx.get(f"{address}/docs").text)
    samples = re.findall(r"<pre[^>]*>(import json, urllib.request.*?)</pre>", page, flags=re.DOTALL)
    assert len(samples) == page.count("await fetch(") == 9
    for sample in samples:
        if "{name}" not in sample:
            exec(sample, {})
            assert capsys.readouterr().out.startswith(("{'", "[{'"))


def test_requests_have_an_id(client: TestClient) -> None:
    for given, same in (("a-1.b", True), ("bad id", False), ("x" * 65, False), (None, False)):
        answer = client.get("/healthz", headers={} if given is None else {"x-request-id": given})
        assert (answer.headers["x-request-id"] == given) == same
        assert answer.headers["x-request-id"]
