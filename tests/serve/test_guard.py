"""What the server must never do."""

import http.client
import re
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi.testclient import TestClient

from emhrnn.errors import EmhrnnError
from emhrnn.serve.app import application, check
from emhrnn.serve.guard import Token
from emhrnn.serve.limits import ServerLimits
from tests.explain.parsed import Page
from tests.serve.conftest import HOSTILE, SMALL, running

PEOPLE = {"accept": "text/html"}


@pytest.mark.parametrize(
    "path", ["/", "/compare", "/corpus", "/runs", "/docs", "/nowhere", "/v1/model", "/static/viewer.js"]
)
def test_strict_headers_everywhere(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=PEOPLE)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in answer.headers
    if path in ("/", "/compare", "/corpus", "/runs", "/docs"):
        page = Page(answer.text)
        assert not [name for name in page.attributes if name.startswith("on") or name == "style"]
        assert not re.search(r'<script(?! src="/static/)|<style|="(javascript|https?):', answer.text)


def test_markup_in_a_document_is_text(client: TestClient) -> None:
    for page in ("/", "/compare", "/part/read"):
        answer = client.post(page, data={"text": HOSTILE + " soup."}, headers=PEOPLE)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text
        shown = re.sub(r"<[^>]*>|//|\s", "", answer.text)  # wherever its phrases end
        assert "&lt;script&gt;alert(1)" in shown


def test_markup_in_names_labels_and_rows_is_text(client: TestClient, data: Path) -> None:
    name = next(path.name for path in data.iterdir() if path.name.startswith("<img"))
    assert "<img" not in client.get("/corpus").text
    page = finished(client, client.post("/corpus", data={"file": name}).url.path)
    assert "<img" not in page
    assert "<script>alert" not in page
    assert "&lt;img" in page


def finished(client: TestClient, path: str) -> str:
    for _ in range(200):
        if client.get(f"{path}/state").json()["state"] != "running":
            break
        time.sleep(0.05)
    return str(client.get(path, headers=PEOPLE).text)


@pytest.mark.parametrize(
    "name",
    ["../secret.csv", "/etc/passwd", "link.csv", "way/secret.csv", "..%2fsecret.csv", "below/../../secret.csv",
     "notes.md", "", ".", "below", "reviews.csv\0.csv", "~/x.csv", "nowhere.csv", "a" * 5000 + ".csv"],
)  # fmt: skip
def test_no_file_outside_the_data_folder_is_read(client: TestClient, name: str) -> None:
    for given in (name, quote(name, safe="")):
        answer = client.post("/corpus", content=f"file={quote(given, safe='')}".encode()[: SMALL.body_bytes])
        assert answer.status_code == 404, given
        assert "secret" not in answer.text


def test_the_data_folder_lists_its_own_files(client: TestClient) -> None:
    page = client.get("/corpus").text
    assert "reviews.csv" in page
    assert "below/more.jsonl" in page
    assert "link.csv" not in page
    assert "secret" not in page
    assert "notes.md" not in page


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/app.py"]
)
def test_static_serves_its_own_files_only(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_uploads_keep_their_place(client: TestClient) -> None:
    body = b"text,label\nThe soup was good.,good\nThe soup was bad.,bad\n"
    answer = client.post("/corpus/upload", params={"name": "../../etc/evil.csv"}, content=body)
    assert answer.status_code == 200
    assert "evil.csv" in finished(client, answer.json()["job"])
    assert client.post("/corpus/upload", params={"name": "x.exe"}, content=b"x").status_code == 422
    assert client.post("/corpus/upload", params={"name": "x.csv"}, content=b"").status_code == 422
    large = client.post("/corpus/upload", params={"name": "x.csv"}, content=b"x" * (SMALL.upload_bytes + 1))
    assert large.status_code == 413


def test_another_name_or_another_site_is_refused(client: TestClient) -> None:
    assert client.get("/", headers={"host": "evil.example"}).status_code == 403
    assert client.get("/", headers={"host": "localhost:8000"}).status_code == 200
    other = {"origin": "http://evil.example"}
    assert client.post("/", data={"text": "soup"}, headers=other).status_code == 403
    assert client.post("/v1/predict", json={"text": "soup"}, headers={"origin": "null"}).status_code == 403
    assert client.post("/", data={"text": "soup"}, headers={"origin": "http://127.0.0.1"}).status_code == 200


def test_a_fault_is_one_sentence(app: Any, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    with TestClient(application([run]), base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        monkeypatch.setattr("emhrnn.api.Model.predict_proba", fail)
        answer = client.post("/v1/predict", json={"text": "soup"})
    assert answer.status_code == 500
    assert answer.json()["error"] == "an error on the server; its log says more"


class TestToken:
    TOKEN = "correct horse battery"

    @pytest.fixture(scope="class")
    @classmethod
    def guarded(cls, made: Path) -> Any:
        with TestClient(application([made / "run"], token=cls.TOKEN), base_url="http://127.0.0.1") as client:
            yield client

    def test_nothing_without_it(self, guarded: TestClient) -> None:
        for path in ("/", "/v1/model", "/metrics", "/docs", "/openapi.json", "/corpus"):
            assert guarded.get(path).status_code == 401, path
        assert guarded.get("/healthz").status_code == 200
        assert guarded.get("/v1/model", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert guarded.get("/v1/model", headers={"authorization": "Bearer \u00e9".encode("latin-1")}).status_code == 401

    def test_as_a_header(self, guarded: TestClient) -> None:
        assert guarded.get("/v1/model", headers={"authorization": f"Bearer {self.TOKEN}"}).status_code == 200

    def test_as_a_cookie_after_signing_in(self, guarded: TestClient) -> None:
        wrong = guarded.post("/login", data={"token": "wrong"})
        assert wrong.status_code == 401
        assert "set-cookie" not in wrong.headers
        right = guarded.post("/login", data={"token": self.TOKEN}, follow_redirects=False)
        assert right.status_code == 303
        assert self.TOKEN not in right.headers["set-cookie"]
        assert "HttpOnly" in right.headers["set-cookie"]
        assert guarded.get("/").status_code == 200
        guarded.cookies.clear()

    @pytest.mark.parametrize(
        "others",
        [
            'prefs={"a":1}; %s',
            "a=b c; %s",
            "_ga[1]=x; %s",
            "caf\u00e9=\u6c64; %s",
            "%s; prefs=[1",
            "; =; x;%s ;",
            "emhrnn=old; %s",
        ],
    )
    def test_cookies_of_others_do_no_harm(self, guarded: TestClient, others: str) -> None:
        for session, status in ((Token(self.TOKEN).session(int(time.time()) + 9), 200), ("wrong", 401), ("", 401)):
            cookies = (others % f"emhrnn={session}").encode()
            assert guarded.get("/v1/model", headers={"cookie": cookies}).status_code == status

    def test_a_session_ends(self, guarded: TestClient) -> None:
        later = int(time.time()) + 9
        for session in (
            Token(self.TOKEN).session(int(time.time()) - 1),
            Token("another token").session(later),
            Token(self.TOKEN).session(later).replace(str(later), str(later + 1)),
        ):
            assert guarded.get("/v1/model", headers={"cookie": f"emhrnn={session}"}).status_code == 401
        guarded.post("/login", data={"token": self.TOKEN})
        assert guarded.get("/v1/model").status_code == 200
        assert guarded.post("/logout", follow_redirects=False).headers["location"] == "/login"
        assert guarded.get("/v1/model").status_code == 401

    def test_people_are_sent_to_the_login_and_back(self, guarded: TestClient) -> None:
        sent = guarded.get("/corpus", headers=PEOPLE, follow_redirects=False)
        assert (sent.status_code, sent.headers["location"]) == (303, "/login?next=/corpus")
        assert "default-src 'none'" in sent.headers["content-security-policy"]
        page = guarded.get("/login?next=/corpus", headers=PEOPLE).text
        assert "run" not in Page(page).text.split()  # what is served is for those who have signed in
        for next, place in (("/corpus", "/corpus"), ("//evil.example/", "/"), ("https://evil.example", "/")):
            right = guarded.post("/login", params={"next": next}, data={"token": self.TOKEN}, follow_redirects=False)
            assert right.headers["location"] == place
            assert "Secure" not in right.headers["set-cookie"]
        guarded.cookies.clear()

    def test_behind_tls_the_cookie_is_secure(self, made: Path) -> None:
        with TestClient(application([made / "run"], token=self.TOKEN), base_url="https://127.0.0.1") as client:
            right = client.post("/login", data={"token": self.TOKEN}, follow_redirects=False)
        assert "Secure" in right.headers["set-cookie"]

    def test_behind_a_proxy_with_tls_too(self, made: Path) -> None:
        """One on this machine that says so; nobody else may."""
        with running(application([made / "run"], token=self.TOKEN)) as base:
            for given, secure in (("https", True), ("http", False)):
                right = httpx.post(f"{base}/login", data={"token": self.TOKEN}, headers={"x-forwarded-proto": given})
                assert ("Secure" in right.headers["set-cookie"]) == secure

    def test_the_description_asks_for_it(self, guarded: TestClient) -> None:
        schema = guarded.get("/openapi.json", headers={"authorization": f"Bearer {self.TOKEN}"}).json()
        assert schema["security"] == [{"token": []}]
        assert schema["paths"]["/healthz"]["get"]["security"] == []
        assert "security" not in schema["paths"]["/v1/predict"]["post"]

    def test_wrong_tokens_are_throttled(self, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        right, wrong = ({"authorization": f"Bearer {token}"} for token in (self.TOKEN, "wrong"))
        limits = ServerLimits(wrong_tokens=3)
        app = application([made / "run"], token=self.TOKEN, limits=limits)
        with TestClient(app, base_url="http://127.0.0.1") as client:
            client.post("/login", data={"token": self.TOKEN})
            session = client.cookies["emhrnn"]
            client.cookies.clear()
            assert [client.get("/v1/model", headers=wrong).status_code for _ in range(4)] == [401, 401, 401, 429]
            refused = client.get("/v1/model", headers=right)  # nobody learns whether this one is right
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
            assert client.post("/login", data={"token": self.TOKEN}).status_code == 429
            assert client.get("/v1/model", headers={"cookie": f"emhrnn={session}"}).status_code == 200
            assert client.get("/v1/model").status_code == 401  # none is not a wrong one
            later = time.monotonic() + 61
            monkeypatch.setattr("emhrnn.serve.guard.time.monotonic", lambda: later)
            assert client.get("/v1/model", headers=right).status_code == 200

    @pytest.mark.parametrize("token", ["password\u00e9\u00e0", "\u6c64\u662f\u51b7\u7684\u6c64\u662f\u51b7\u7684"])
    def test_letters_beyond_ascii(self, made: Path, token: str) -> None:
        with TestClient(application([made / "run"], token=token), base_url="http://127.0.0.1") as client:
            sent = [token.encode()] + ([token.encode("latin-1")] if "\u00e0" in token else [])
            for given in sent:
                for header, status in ((given, 200), (given[:-1], 401), (given + b"\xa0", 401), (b"\xff", 401)):
                    answer = client.get("/v1/model", headers={"authorization": b"Bearer " + header})
                    assert answer.status_code == status, header
            assert client.post("/login", data={"token": token}, follow_redirects=False).status_code == 303


@pytest.mark.parametrize(
    ("host", "token", "runs", "told"),
    [
        ("0.0.0.0", None, 1, "can be reached from other machines"),
        ("example.org", None, 1, "can be reached from other machines"),
        ("127.0.0.1", "short", 1, "soon guessed"),
        ("127.0.0.1", None, 3, "give one, or two"),
    ],
)
def test_refuses_to_start(host: str, token: str | None, runs: int, told: str) -> None:
    with pytest.raises(EmhrnnError, match=told):
        check([Path("run")] * runs, host, token, None)


def test_refuses_a_data_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(EmhrnnError, match="is not a folder"):
        check([Path("run")], "127.0.0.1", None, tmp_path / "nowhere")


def test_slow_clients_hold_nobody_up(run: Path) -> None:
    app = application([run], limits=SMALL)
    with running(app, SMALL) as base:
        place = ("127.0.0.1", int(base.rpartition(":")[2]))
        silent, slow = socket.create_connection(place), socket.create_connection(place)
        slow.sendall(b"POST /v1/predict HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{")
        connection = http.client.HTTPConnection(*place, timeout=10)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        slow.settimeout(10)
        assert b" 408 " in slow.recv(200)
        silent.settimeout(10)
        assert silent.recv(200) == b""  # closed
        for opened in (silent, slow, connection):
            opened.close()
