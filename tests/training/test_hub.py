"""Runs go to a stand-in for the Hub, which speaks the part of its HTTP API that the library uses, and come back."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from emhrnn.api import Model, load
from emhrnn.errors import CheckpointError, DataError, ExtraError
from emhrnn.training import pack as hub

constants = pytest.importorskip("huggingface_hub.constants")
TOKEN, COMMIT = "hf_test", "0" * 40
TEXTS = ["The soup was good.", "Bad room."]


class Hub(BaseHTTPRequestHandler):
    """Keeps files by repository and name."""

    files: dict[str, bytes]
    private: dict[str, bool]

    def answer(self, code: int, body: object = None, **headers: str) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            return self.answer(401, {"error": "Invalid credentials"})
        parts = self.path.split("?")[0].split("/")
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.private[name] = asked.get("private") is True or asked.get("visibility") == "private"
            return self.answer(200, {"url": f"{constants.ENDPOINT}/{name}"})
        if self.path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        if "preupload" in parts:
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]
            ]
            return self.answer(200, {"files": files})
        assert "commit" in parts, self.path
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                path = f"{parts[3]}/{parts[4]}/{line['value']['path']}"
                self.files[path] = base64.b64decode(line["value"]["content"])
        return self.answer(
            200, {"commitUrl": f"{constants.ENDPOINT}/{parts[3]}/{parts[4]}/commit/{COMMIT}", "commitOid": COMMIT}
        )

    def do_GET(self) -> None:
        path = self.path.split("?")[0].lstrip("/")
        name = "/".join(path.split("/resolve/")[0].split("/")) + "/" + path.split("/")[-1]
        if "/resolve/" in path and name in self.files:
            content = self.files[name]
            etag = hashlib.sha256(content).hexdigest()
            return self.answer(200, content, etag=f'"{etag}"', x_repo_commit=COMMIT)
        return self.answer(404, {"error": "Repository not found"}, x_error_code="RepoNotFound")

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    Kept = type("Kept", (Hub,), {"files": {}, "private": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), Kept) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{http.server_port}"
        monkeypatch.setattr(constants, "ENDPOINT", here)
        template = f"{here}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr("huggingface_hub.file_download.HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        yield Kept
        http.shutdown()


def test_a_run_goes_there_and_comes_back(server: type[Hub]) -> None:
    model = load("demo")
    address = model.push_to_hub("ada/reviews", private=True, token=TOKEN)
    assert "ada/reviews" in address
    assert server.private == {"ada/reviews": True}
    assert server.files.keys() == {"ada/reviews/model.emhrnn", "ada/reviews/README.md"}
    card = server.files["ada/reviews/README.md"].decode()
    assert card.startswith("---\nlibrary_name: emhrnn\n")
    assert 'emhrnn.load("hf://ada/reviews")' in card
    for name in ("hf://ada/reviews", Path("hf://ada/reviews"), "hf://ada/reviews@main"):
        again = load(name)
        assert (again.predict_proba(TEXTS) == model.predict_proba(TEXTS)).all()


def test_what_is_wrong_is_said(server: type[Hub]) -> None:
    model = load("demo")
    with pytest.raises(DataError, match=r"Hub refused ada/reviews.*token"):
        model.push_to_hub("ada/reviews", token="wrong")
    with pytest.raises(DataError, match="give user/name"):
        model.push_to_hub("reviews", token=TOKEN)
    changed = load("demo")
    changed.run = model.run
    for unsaved in (Model(model.run), changed):
        with pytest.raises(DataError, match="not on disk as it is now; save it"):
            unsaved.push_to_hub("ada/reviews")
    with pytest.raises(CheckpointError, match=r"cannot get model\.emhrnn.*is the name right"):
        load("hf://ada/nothing")
    with pytest.raises(CheckpointError, match="give hf://user/name"):
        load("hf://nothing")
    server.files["ada/evil/model.emhrnn"] = b"no zip"
    with pytest.raises(CheckpointError):
        load("hf://ada/evil")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.extras.installed", lambda library: library != "huggingface_hub")
    with pytest.raises(ExtraError, match=r"emhrnn\[hub\]"):
        hub.downloaded("hf://ada/reviews")
