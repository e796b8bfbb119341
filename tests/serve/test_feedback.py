"""Corrections: what is saved, where, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from fastapi.testclient import TestClient

from emhrnn.corpus import Source
from emhrnn.serve.app import application
from emhrnn.serve.limits import ServerLimits
from emhrnn.training.pack import located
from tests.behaviour.commands import GOOD
from tests.serve.conftest import HOSTILE
from tests.serve.test_guard import PEOPLE

TOKEN = "correct horse battery"


@pytest.fixture
def own_run(run: Path, tmp_path: Path) -> Path:
    return Path(copytree(run, tmp_path / "mine"))


@pytest.fixture
def client(own_run: Path) -> Iterator[TestClient]:
    with TestClient(application([own_run], token=TOKEN), base_url="http://127.0.0.1") as opened:
        opened.post("/login", data={"token": TOKEN, "who": "Ann. B <b>"})
        yield opened


def test_corrections_are_appended_and_can_be_trained_on(client: TestClient, own_run: Path) -> None:
    assert "Nothing has been saved yet" in client.get("/feedback").text
    assert client.get("/feedback.jsonl").status_code == 404
    for text, spans in ((GOOD, "4-8,0-3"), (HOSTILE + " good", "")):
        form = {"text": text, "label": "bad", "predicted": "good", "spans": spans}
        assert client.post("/feedback", data=form).json() == {"saved": True}
    path = own_run.with_name("mine.feedback.jsonl")
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert (first["text"], first["label"], first["predicted"]) == (GOOD, "bad", "good")
    assert (first["spans"], second["spans"]) == ([[0, 3], [4, 8]], [])
    assert first["who"] == "Ann. B <b>"
    assert first["when"].endswith("+00:00")
    assert [(record.text, record.label) for record in Source(path)] == [(GOOD, "bad"), (HOSTILE + " good", "bad")]
    page = client.get("/feedback").text
    assert "2</span> corrections" in page
    assert "emhrnn train mine.feedback.jsonl --from mine --out new-run" in page  # em-hrnn does not learn from marks
    assert "<script>alert" not in page
    assert f"<mark>{GOOD[4:8]}</mark>" in page
    assert client.get("/feedback.jsonl").text == path.read_text(encoding="utf-8")


def test_marked_phrases_are_trained_on_where_the_model_learns_from_them(tmp_path: Path) -> None:
    run = copytree(located(Path("demo")), tmp_path / "mine")
    with TestClient(application([run]), base_url="http://127.0.0.1") as opened:
        assert opened.post("/feedback", data={"text": GOOD, "label": "1", "spans": "4-8"}).json() == {"saved": True}
        assert "mine.feedback.jsonl --from mine --spans-column spans --out" in opened.get("/feedback").text


def test_a_line_that_was_cut_spoils_no_later_one(client: TestClient, own_run: Path) -> None:
    path = own_run.with_name("mine.feedback.jsonl")
    path.write_bytes(b'{"text": "cut by a ki')
    for label in ("bad", "good"):
        assert client.post("/feedback", data={"text": GOOD, "label": label}).json() == {"saved": True}
    first, *later = path.read_text(encoding="utf-8").splitlines()
    assert first == '{"text": "cut by a ki'
    assert [json.loads(line)["label"] for line in later] == ["bad", "good"]


def test_a_browser_is_sent_to_the_list(client: TestClient) -> None:
    answer = client.post("/feedback", data={"text": GOOD, "label": "good"}, headers=PEOPLE, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/feedback?saved=1")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"text": " ", "label": "good"}, "no words"),
        ({"text": GOOD, "label": "ugly"}, "none of the model's classes"),
        ({"text": GOOD, "label": "good", "spans": "4-999999"}, "inside the text"),
        ({"text": GOOD, "label": "good", "spans": "4-x"}, "pairs of characters"),
    ],
)
def test_what_is_refused(client: TestClient, own_run: Path, form: dict[str, str], told: str) -> None:
    answer = client.post("/feedback", data=form)
    assert answer.status_code == 422
    assert told in answer.json()["error"]
    assert not own_run.with_name("mine.feedback.jsonl").exists()


def test_a_full_file_and_broken_lines(own_run: Path) -> None:
    path = own_run.with_name("mine.feedback.jsonl")
    path.write_text('no json\n{"text": 3}\n["text"]\n', encoding="utf-8")
    app = application([own_run], limits=ServerLimits(feedback_bytes=40))
    with TestClient(app, base_url="http://127.0.0.1") as opened:
        assert opened.get("/feedback").status_code == 200
        full = opened.post("/feedback", data={"text": GOOD, "label": "good"})
    assert full.status_code == 507
    assert "is full" in full.json()["error"]


def test_signing_out_ends_the_session_on_the_server(client: TestClient) -> None:
    session = client.cookies["emhrnn"]
    assert client.get("/v1/model").status_code == 200
    client.post("/logout")
    client.cookies.clear()
    assert client.get("/v1/model", headers={"cookie": f"emhrnn={session}"}).status_code == 401


def test_names_of_runs_are_for_those_who_signed_in(client: TestClient) -> None:
    assert "mine" in client.get("/runs", headers=PEOPLE).text
    client.cookies.clear()
    for path in ("/login", "/static/none", "/nowhere", "/runs"):
        assert "mine" not in client.get(path, headers=PEOPLE).text
