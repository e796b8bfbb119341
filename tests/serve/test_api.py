"""The API: the same answers as the model gives, errors in one sentence."""

import http.client
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from emhrnn.api import load
from emhrnn.serve.app import application
from emhrnn.serve.limits import ServerLimits
from tests.behaviour.commands import BAD, GOOD
from tests.serve.conftest import SMALL


def test_predicts_as_the_model_does(client: TestClient, run: Path) -> None:
    model, texts = load(run), [GOOD, BAD, "Soup?"]
    answer = client.post("/v1/predict", json={"texts": texts})
    assert answer.status_code == 200
    told = answer.json()["predictions"]
    assert [prediction["label"] for prediction in told] == model.predict(texts)
    for row, prediction in zip(model.predict_proba(texts), told, strict=True):
        assert list(prediction["probabilities"]) == list(model.classes)
        assert list(prediction["probabilities"].values()) == pytest.approx(row.tolist(), abs=1e-6)


def test_one_text_is_a_list_of_one(client: TestClient) -> None:
    assert len(client.post("/v1/predict", json={"text": GOOD}).json()["predictions"]) == 1


def test_explains_as_the_model_does(client: TestClient, run: Path) -> None:
    told = client.post("/v1/explain", json={"text": GOOD}).json()["explanations"]
    expected = load(run).explain(GOOD).to_dict()
    assert told[0]["text"] == expected["text"]
    assert [s["text"] for s in told[0]["sentences"]] == [s["text"] for s in expected["sentences"]]
    assert told[0]["sentences"][0]["weight"] == pytest.approx(expected["sentences"][0]["weight"], abs=1e-5)


def test_the_threshold_moves_the_phrases(client: TestClient) -> None:
    def phrases(threshold: float) -> int:
        told = client.post("/v1/explain", json={"text": GOOD, "threshold": threshold}).json()["explanations"][0]
        return sum(len(sentence["phrases"]) for sentence in told["sentences"])

    words = len(load_words(client))
    assert phrases(0.0) == words
    assert phrases(1.0) == 2  # one for each sentence


def load_words(client: TestClient) -> list[Any]:
    told = client.post("/v1/explain", json={"text": GOOD}).json()["explanations"][0]
    return [word for sentence in told["sentences"] for phrase in sentence["phrases"] for word in phrase["words"]]


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({}, 422, "either text or texts"),
        ({"text": "a", "texts": ["b"]}, 422, "either text or texts"),
        ({"text": "   "}, 422, "no words"),
        ({"texts": []}, 422, "no text"),
        ({"texts": ["a"] * (SMALL.texts + 1)}, 422, f"at most {SMALL.texts}"),
        ({"text": "a " * (SMALL.words + 1)}, 422, f"at most {SMALL.words}"),
        ({"text": 3}, 422, "string"),
        ({"text": "a", "other": 1}, 422, "other"),
        ({"text": "x" * (SMALL.body_bytes + 1)}, 413, "at most"),
    ],
)
def test_what_cannot_be_answered_is_told(client: TestClient, body: Any, status: int, told: str) -> None:
    answer = client.post("/v1/predict", json=body)
    assert answer.status_code == status
    assert told in answer.json()["error"]


SEND = 'send {"text": "..."} or {"texts": [...]}'


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"{", 400, f"the body is not JSON; {SEND}"),
        (b"{bad", 400, f"the body is not JSON; {SEND}"),
        (b'{"text": "\xe9t\xe9"}', 400, f"the body is not UTF-8; {SEND} in UTF-8"),
        (b"[" * 3000, 400, f"the body is nested too deeply; {SEND}"),
        (b"[]", 422, f"the body is not a JSON object; {SEND}"),
        (b"[1, 2]", 422, f"the body is not a JSON object; {SEND}"),
        (b'"x"', 422, f"the body is not a JSON object; {SEND}"),
        (b"null", 422, f"the body is not a JSON object; {SEND}"),
        (b"", 422, f"the body is not a JSON object; {SEND}"),
        (b'{"txt": "a"}', 422, "txt is not a field of this request; /docs lists what it takes"),
    ],
)
def test_a_body_that_is_not_understood(client: TestClient, body: bytes, status: int, told: str) -> None:
    for path in ("/v1/predict", "/v1/explain"):
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["error"]) == (status, told)


def test_a_number_with_too_many_digits(run: Path) -> None:
    body = b'{"text": "soup", "threshold": ' + b"1" * 10_000 + b"}"
    with TestClient(application([run]), base_url="http://127.0.0.1") as client:
        answer = client.post("/v1/explain", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"] == f"the body has a number with too many digits; {SEND}"


@pytest.mark.parametrize(
    ("headers", "came"),
    [
        ({"content-type": "application/x-www-form-urlencoded"}, "came as application/x-www-form-urlencoded"),
        ({"content-type": "text/plain"}, "came as text/plain"),
        ({}, "came without a content type"),
    ],
)
def test_a_body_of_another_content_type(client: TestClient, headers: dict[str, str], came: str) -> None:
    answer = client.post("/v1/predict", content=b'{"text": "bad"}', headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"] == f"the body {came}; send it with `Content-Type: application/json`"


def test_a_larger_body_is_refused_while_it_arrives(client: TestClient) -> None:
    parts = (b"x" * 1000 for _ in range(SMALL.body_bytes // 1000 + 2))
    answer = client.post("/v1/predict", content=parts)
    assert answer.status_code == 413


def test_odd_text_is_text(client: TestClient) -> None:
    for text in ("\x00 soup", "\u202egnp.exe", "\U0001f372 soup", "\ud83d soup".encode("utf-8", "replace").decode()):
        assert client.post("/v1/explain", json={"text": text}).status_code == 200


def test_facts_health_metrics(client: TestClient) -> None:
    facts = client.get("/v1/model").json()
    assert [(fact["model"], fact["classes"], fact["explains"]) for fact in facts] == [
        ("em-hrnn", ["bad", "good"], True)
    ] * 2
    assert client.get("/healthz").json() == {"status": "ok"}
    client.post("/v1/predict", json={"text": GOOD})
    lines = client.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(values['emhrnn_requests_total{route="/v1/predict",status="200"}']) >= 1
    assert float(values["emhrnn_documents_total"]) >= 1
    assert values['emhrnn_request_seconds_bucket{le="+Inf"}'] == values["emhrnn_request_seconds_count"]


def test_no_path_and_no_method(client: TestClient) -> None:
    assert "no such page" in client.get("/v2/predict").json()["error"]
    assert client.get("/v1/predict").status_code == 405


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/healthz", "GET, HEAD"), ("/v1/predict", "POST"), ("/", "GET, HEAD, POST"), ("/corpus/key/cancel", "POST")],
)
def test_another_method_is_told_the_right_ones(client: TestClient, path: str, allowed: str) -> None:
    for accept in ("application/json", "text/html"):
        answer = client.request("DELETE", path, headers={"accept": accept})
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


@pytest.mark.parametrize(
    "path",
    ["/", "/compare", "/corpus", "/runs", "/docs", "/login", "/static/viewer.js", "/openapi.json", "/v1/model",
     "/healthz", "/nowhere", "/v1/predict"],
)  # fmt: skip
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    number = {"x-request-id": "1"}
    whole, head = client.get(path, headers=number), client.head(path, headers=number)
    assert (head.status_code, head.headers) == (whole.status_code, whole.headers)
    assert whole.content
    assert not head.content


def test_head_over_the_wire(address: str) -> None:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=10)
    for method in ("HEAD", "GET"):  # the second tells whether the first left anything behind
        connection.request(method, "/healthz")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["content-length"]) == (200, "15")
        assert len(answer.read()) == (0 if method == "HEAD" else 15)
    connection.close()


def test_limits_are_those_of_the_documentation() -> None:
    limits = ServerLimits()
    assert (limits.texts, limits.words, limits.body_bytes) == (256, 20_000, 2 << 20)


def test_errors_have_codes_and_ids(client: TestClient) -> None:
    """For programs: the sentence may change, the code does not; the id finds the line of the log."""
    schema = client.get("/openapi.json").json()["components"]["schemas"]["ErrorResponse"]
    assert set(schema["required"]) == {"error", "code", "request_id"}
    for body, code in (
        ({"text": " "}, "no_words"),
        ({"texts": []}, "no_text"),
        ({"texts": ["a"] * 4}, "too_many_texts"),
        ({"text": "a " * 101}, "too_many_words"),
        ({"text": "a", "run": "none"}, "unknown_run"),
        ({"text": "a", "user": "x"}, "no_ids"),
        ({}, "invalid"),
    ):
        answer = client.post("/v1/predict", json=body, headers={"x-request-id": "mine-7"})
        assert (answer.json()["code"], answer.json()["request_id"]) == (code, "mine-7")
    refused = client.get("/v1/nothing")
    assert refused.json()["code"] == "not_found"
    assert refused.json()["request_id"] == refused.headers["x-request-id"]
    elsewhere = client.get("/v1/model", headers={"host": "elsewhere"})  # refused before the application
    assert elsewhere.json()["code"] == "forbidden"
    assert elsewhere.json()["request_id"] == elsewhere.headers["x-request-id"]
