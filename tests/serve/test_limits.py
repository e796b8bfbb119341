"""How many words a request may bring, as the model counts them; and that a large answer holds nobody else up."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request
from fastapi.responses import HTMLResponse
from fastapi.testclient import TestClient

from emhrnn.explain.explanation import Explanation
from emhrnn.serve.app import application
from emhrnn.serve.limits import RefusedError, ServerLimits, check_explained, check_texts
from emhrnn.serve.pages import rendered
from emhrnn.text import read_document
from tests.behaviour.commands import GOOD

FEW = ServerLimits(words=20, explained_words=30)
BOTH = pytest.mark.parametrize("path", ["/v1/predict", "/v1/explain"])


@pytest.fixture(scope="module")
def strict(made: Path) -> Iterator[TestClient]:
    with TestClient(application([made / "run"], limits=FEW), base_url="http://127.0.0.1") as opened:
        yield opened


@BOTH
def test_words_without_blanks_are_words(strict: TestClient, path: str) -> None:
    for text in ("a," * 11, "!a" * 11, "\u6c64" * 21, "soup " * 21):
        answer = strict.post(path, json={"texts": ["fine", text]})
        assert answer.status_code == 422
        for part in ("text 2", f"{len(text)} characters", "more than 20 words", "give at most 20"):
            assert part in answer.json()["error"]
    for text in ("a," * 10, "soup " * 20, "x" * 1000, "soup<br />" * 20):
        assert strict.post(path, json={"text": text}).status_code == 200


def test_as_many_words_as_the_model_reads() -> None:
    for text in (GOOD * 3, "a,b;c " * 9, "Don't!<br /><br>Mr. O'Brien: 3.14? " * 4, "\0 soup \ud800,x" * 7):
        words = len(read_document(text.replace("\0", " ")))
        check_texts([text], ServerLimits(words=words))
        with pytest.raises(RefusedError, match="has more than"):
            check_texts([text], ServerLimits(words=words - 1))


@BOTH
@pytest.mark.parametrize("text", ["", "  \n", "\0", " \0\t\0", "<br>", "<br /><BR>\0", "\u2003"])
def test_a_text_without_words(strict: TestClient, path: str, text: str) -> None:
    answer = strict.post(path, json={"texts": ["soup", text]})
    assert answer.status_code == 422
    assert answer.json()["error"] == "text 2 has no words; give a text with at least one word"


def test_words_to_explain_in_one_request(strict: TestClient) -> None:
    texts = ["soup, " * 8] * 2
    assert strict.post("/v1/predict", json={"texts": texts}).status_code == 200
    refused = strict.post("/v1/explain", json={"texts": texts})
    assert refused.status_code == 422
    assert "2 texts with more than 30 words together" in refused.json()["error"]
    assert strict.post("/v1/explain", json={"texts": ["soup, " * 8, "soup, " * 7]}).status_code == 200


def test_what_people_may_explain() -> None:
    check_explained(["soup, " * 97] * 256, ServerLimits())
    with pytest.raises(RefusedError, match="256 texts with more than 50,000 words together"):
        check_explained(["The soup was good, not bad. " * 230] * 256, ServerLimits())


def test_explanations_are_encoded_away_from_the_event_loop(strict: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    to_dict, on_the_loop = Explanation.to_dict, list[bool]()

    def watched(explanation: Explanation) -> dict[str, Any]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            on_the_loop.append(False)
        else:
            on_the_loop.append(True)
        return to_dict(explanation)

    monkeypatch.setattr(Explanation, "to_dict", watched)
    texts = ["The s\u00fcp was good.", 'Not "bad".']
    answer = strict.post("/v1/explain", json={"texts": texts})
    assert on_the_loop == [False, False]
    assert answer.headers["content-type"] == "application/json"
    assert [explanation["text"] for explanation in answer.json()["explanations"]] == texts


def test_long_texts_are_counted_away_from_the_event_loop(strict: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = list[str]()

    def watched(text: str) -> list[str]:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        counted.append(text)
        return [text]

    monkeypatch.setattr("emhrnn.serve.limits.split_sentences", watched)
    long = ["longer words " * 2, "and, again " * 2]
    for path in ("/v1/predict", "/v1/explain"):
        assert strict.post(path, json={"texts": long}).status_code == 200
    assert set(counted) == set(long)
    counted.clear()
    assert strict.post("/", data={"text": long[0]}).status_code == 200
    assert long[0] in counted


def test_a_text_is_drawn_away_from_the_event_loop(strict: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = list[str]()

    def watched(request: Request, name: str, **values: Any) -> HTMLResponse:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        drawn.append(name)
        return rendered(request, name, **values)

    monkeypatch.setattr("emhrnn.serve.document.rendered", watched)
    assert "data-key" in strict.post("/", data={"text": GOOD}).text
    assert "data-key" in strict.post("/part/read", data={"text": GOOD}).text
    assert drawn == ["read.html", "reading.html"]
