"""The pages without script: each flow works with plain forms and links."""

import gzip
import io
import os
import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from emhrnn.api import load
from emhrnn.corpus.record import Record, Where
from emhrnn.serve.app import application
from emhrnn.serve.engine import ServedRun
from emhrnn.serve.jobs import PIECE, PIECE_CHARACTERS, FileJob, Jobs, _piece
from emhrnn.serve.limits import RefusedError, ServerLimits
from emhrnn.serve.pages import markdown
from tests.behaviour.commands import BAD, GOOD
from tests.explain.parsed import Page
from tests.serve.test_guard import PEOPLE, finished


def test_reading(client: TestClient) -> None:
    empty = client.get("/").text
    assert "Or start with one of these" in empty
    page = client.post("/", data={"text": GOOD}, headers=PEOPLE).text
    assert "Why this label?" in page
    assert 'class="path because"' in page
    assert page.count('<li class="sentence"') == 2


def test_dropping_phrases(client: TestClient) -> None:
    page = client.post("/part/read", data={"text": GOOD, "dropped": "0"}).text
    assert "Without 1 phrase<" in page
    assert page.count(' dropped"') == 1
    both = client.post("/part/read", data={"text": GOOD, "dropped": "0,1,99999,x"}).text
    assert "Without 2 phrases" in both
    all_of_it = client.post("/part/read", data={"text": GOOD, "dropped": ",".join(map(str, range(40)))})
    assert all_of_it.status_code == 200


def test_moving_the_threshold(client: TestClient) -> None:
    def phrases(threshold: str) -> int:
        return client.post("/part/read", data={"text": GOOD, "threshold": threshold}).text.count(' data-k="')

    assert phrases("0") > phrases("1") >= 2
    assert phrases("nonsense") == phrases("")


def test_what_is_wrong_with_a_text_is_told_on_the_page(client: TestClient) -> None:
    answer = client.post("/", data={"text": " "}, headers=PEOPLE)
    assert answer.status_code == 422
    assert "has no words" in answer.text
    assert "<textarea" in answer.text


def test_comparing(client: TestClient) -> None:
    page = client.post("/compare", data={"text": BAD}).text
    assert page.count('class="card reading"') == 2
    assert "They agree: <b>" in page  # it is the same run twice
    assert "not the other run's" not in page


def test_a_file(client: TestClient) -> None:
    path = client.post("/corpus", data={"file": "below/more.jsonl"}).url.path
    page = finished(client, path)
    assert ">13<" in page  # documents with words
    assert "without words" in page
    assert 'class="confusion"' in page
    bad = client.get(path, params={"label": "bad"}).text
    assert "6 documents, labelled <strong>bad<" in bad
    for order in ("sure", "error", "file", "nonsense"):
        assert client.get(path, params={"order": order, "page": 99}).status_code == 200
    opened = client.get("/", params={"job": path.rpartition("/")[2], "row": 1}).text
    assert 'class="verdict-card card"' in opened
    assert "labelled" in opened
    assert client.get("/", params={"job": path.rpartition("/")[2], "row": 999}, headers=PEOPLE).status_code == 404


def test_a_file_without_labels_and_a_broken_one(client: TestClient) -> None:
    def opened(name: str, body: bytes) -> str:
        return finished(client, client.post("/corpus/upload", params={"name": name}, content=body).json()["job"])

    plain = opened("plain.csv", b"text\nThe soup was good.\nThe soup was bad.\n")
    assert "Predicted classes" in plain
    assert "Not compared with labels" in plain
    broken = opened("broken.parquet", b"this is not a parquet")
    assert 'class="trouble"' in broken
    assert "Traceback" not in broken
    assert "upload" not in broken  # where the server keeps it


def test_rows_without_words_and_with_other_labels_are_counted(client: TestClient) -> None:
    """A break tag is not a word, and one such row made the whole file fail."""
    rows = b"text,label\n<br />,good\nThe soup was good.,fine\nThe soup was bad.,bad\n"
    page = finished(client, client.post("/corpus/upload", params={"name": "odd.csv"}, content=rows).json()["job"])
    assert "<dt>without words</dt><dd>1</dd>" in page
    assert "<dt>other labels</dt><dd>1<small>none of the model's classes" in page
    assert "of 1 with a label" in page
    assert 'class="trouble"' not in page


def test_small_uploads_that_unpack_to_large_ones_are_bounded(client: TestClient) -> None:
    def opened(content: bytes) -> str:
        packed = gzip.compress(content)
        answer = client.post("/corpus/upload", params={"name": "packed.csv.gz"}, content=packed)
        return finished(client, answer.json()["job"])

    assert "packed.csv.gz unpacks to more than 1 MB; score it with emhrnn predict" in opened(
        b"text\n" + b"a" * (2 << 20)
    )
    page = opened(b"text\n" + b"soup " * 2000 + b"\nThe soup was good.\n")
    assert "<dt>too long</dt><dd>1<small>over 5,000 characters" in page
    assert "<dt>documents</dt><dd>1</dd>" in page
    assert "no rows with words and at most 5,000 characters; pick another" in opened(b"text\n" + b"soup " * 2000)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"text": ["soup " * 500_000, "good"]}, {"compression": "zstd"}),  # the footer tells
        ({"text": pa.DictionaryArray.from_arrays([0] * 3000, ["soup " * 200])}, {}),  # one value in every row
        ({"text": ["soup"], "labels": [["good " * 200] * 3000]}, {}),  # and within one row
    ],
)
def test_parquet_that_unpacks_to_much_is_refused(
    client: TestClient, columns: dict[str, Any], options: dict[str, Any]
) -> None:
    packed = io.BytesIO()
    pq.write_table(pa.table(columns), packed, **options)
    assert len(packed.getvalue()) < 20_000
    answer = client.post("/corpus/upload", params={"name": "a.parquet"}, content=packed.getvalue())
    page = finished(client, answer.json()["job"])
    assert "a.parquet unpacks to more than 1 MB; score it with emhrnn predict" in page


def test_parquet_of_a_usual_size_is_read(client: TestClient) -> None:
    packed = io.BytesIO()
    columns = {
        "text": ["The soup was good.", None],
        "label": pa.array(["good", "bad"]).dictionary_encode(),
        "stars": pa.array([5, 1]).dictionary_encode(),
        "more": [{"kind": "a", "marks": [1, 2]}, {"kind": "b", "marks": None}],
    }
    pq.write_table(pa.table(columns), packed)
    answer = client.post("/corpus/upload", params={"name": "a.parquet"}, content=packed.getvalue())
    assert "<dt>documents</dt><dd>1</dd>" in finished(client, answer.json()["job"])


def test_long_rows_take_turns_of_their_own() -> None:
    """So that no request waits for many of them."""
    texts = ["a" * (PIECE_CHARACTERS // 2)] * 3 + ["a"] * (PIECE + 1)
    records = iter([Record(text, None, Where("x.csv", row)) for row, text in enumerate(texts)])
    assert [len(_piece(records)) for _ in range(4)] == [2, PIECE, 2, 0]


def test_the_label_of_a_row_stays_while_its_text_does(client: TestClient) -> None:
    page = client.post("/part/read", data={"text": GOOD, "dropped": "0", "label": "<good>"}).text
    assert "labelled &lt;good&gt;<" in page
    assert 'data-label="&lt;good&gt;"' in page


def test_a_change_sends_the_change_alone(client: TestClient) -> None:
    """A reading is kept for a while: its key stands for the text."""
    page = client.post("/part/read", data={"text": GOOD}).text
    key = re.findall(r'data-key="([0-9a-f]{32})"', page)[0]
    change = client.post("/part/read", data={"key": key, "dropped": "0", "part": "verdict"}).text
    assert "Without 1 phrase<" in change
    assert "<li class" not in change.partition('class="weights"')[0]
    edited = client.post("/part/read", data={"key": key, "edited": BAD, "part": "verdict"}).text
    assert ">Edited<" in edited
    words = client.get(f"/part/{key}/phrase", params={"k": 0}).text
    assert 'class="words"' in words
    assert client.get(f"/part/{key}/phrase", params={"k": 999}).status_code == 404
    assert client.post("/part/read", data={"key": "gone", "dropped": "0"}).status_code == 404
    assert client.post("/part/read", data={"key": key, "edited": " "}).status_code == 422


def test_sentences_far_down_are_plain_until_they_are_asked_for(run: Path) -> None:
    text = " ".join([GOOD, BAD] * 200)
    with TestClient(application([run]), base_url="http://127.0.0.1") as client:
        page = client.post("/part/read", data={"text": text}).text
        key = re.findall(r'data-key="([0-9a-f]{32})"', page)[0]
        far = [int(number) for number in re.findall(r'<li class="sentence far" id="s(\d+)"', page)]
        assert far[-1] == page.count('<li class="sentence') - 1
        drawn = client.get(f"/part/{key}/sentences", params={"first": far[0], "last": far[0] + 3}).text
        assert drawn.count('<li class="sentence"') == 3
        assert ' data-k="' in drawn
        most = client.get(f"/part/{key}/sentences", params={"first": 0, "last": 10**6}).text
        assert most.count('<li class="sentence"') == 50


def test_uploads_stay_only_while_they_are_read(app: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    body, uploads = b"text\nThe soup was good.\n", app.app.state.uploads
    for name in ("a.\0.csv", f"a.{'b' * 300}.csv", "A.JSON.bz2", "x.csv"):
        answer = client.post("/corpus/upload", params={"name": name}, content=body)
        assert answer.status_code == 200, name
        finished(client, answer.json()["job"])
    for _ in range(100):  # the file goes when its job says that it is done
        if not list(uploads.iterdir()):
            break
        time.sleep(0.05)
    assert list(uploads.iterdir()) == []

    def full(_: Jobs) -> None:
        raise RefusedError(503, "two files are being read already; wait for one or cancel it")

    monkeypatch.setattr(Jobs, "check_room", full)
    assert client.post("/corpus/upload", params={"name": "x.csv"}, content=body).status_code == 503
    assert list(uploads.iterdir()) == []


def test_uploads_of_a_killed_server_go_at_the_next_start(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "emhrnn-uploads-old").mkdir()
    (tmp_path / "emhrnn-uploads-old" / "upload.csv").write_text("text\nprivate\n")
    (tmp_path / "emhrnn-uploads-old.lock").touch()
    with TestClient(application([run])), TestClient(application([run])):  # each leaves the other's alone
        assert len(list(tmp_path.glob("emhrnn-uploads-*.lock"))) == 2
        assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 2
        assert not (tmp_path / "emhrnn-uploads-old").exists()
    assert list(tmp_path.glob("emhrnn-uploads-*")) == []


def test_files_of_the_data_folder(run: Path, tmp_path: Path) -> None:
    """More than a page holds; and one whose name is not UTF-8, which broke the page for all."""
    for number in range(203):
        (tmp_path / f"{number:03}.csv").write_text("text\ngood\n")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.csv")).write_text("text\ngood\n")
    with TestClient(application([run], data=tmp_path), base_url="http://127.0.0.1") as opened:
        page = opened.get("/corpus").text
    assert page.count("<option") == 200
    assert "3 more files are not listed" in page


def test_cancelling(client: TestClient) -> None:
    path = client.post("/corpus", data={"file": "reviews.csv"}).url.path
    assert client.post(f"{path}/cancel").status_code == 200
    finished(client, path)
    assert client.get(f"{path}/state").json()["state"] in ("cancelled", "done")  # done if it was faster than we
    assert client.get("/corpus/none", headers=PEOPLE).status_code == 404


def test_a_cancelled_file_is_read_no_further(run: Path, data: Path) -> None:
    model = load(run)
    served = ServedRun("run", run, model, ServerLimits())
    job = FileJob("key", "reviews.csv", data / "reviews.csv", served, ServerLimits(rows=40))
    job.cancel.set()
    job.run()
    assert (job.state, job.rows) == ("cancelled", [])


def test_runs_and_reference(client: TestClient) -> None:
    runs = client.get("/runs").text
    assert "learning_rate" in runs
    assert "<svg" in runs
    assert "<dt>macro-F1</dt>" in runs
    assert "<h3>Model card" in runs
    assert '<th scope="col">precision</th>' in runs
    docs = client.get("/docs").text
    assert "POST /v1/predict" in docs
    assert "curl http://127.0.0.1/v1/model<" in docs
    assert "Which run answers, by its name in /v1/model" in docs


def test_the_reference_calls_the_server_that_was_asked(client: TestClient) -> None:
    docs = client.get("/docs", headers={"host": "localhost:8123"}).text
    assert "curl -X POST http://localhost:8123/v1/predict -H" in docs
    assert ":8000" not in docs


def test_every_page_is_well_formed(client: TestClient) -> None:
    for path in ("/", "/compare", "/corpus", "/runs", "/docs", "/login"):
        Page(client.get(path).text)
    Page(client.post("/", data={"text": GOOD}).text)


def test_model_cards_are_rendered_and_escaped() -> None:
    table = "| a | b |\n| --- | --- |\n| 1 | <2> |"
    card = markdown(
        f"# A <b>card\n\nText with `code <i>`,\n[a](https://b.c).\n\n{table}\n\n- x\n- y\n\n```\nz & <z>\n```\n"
    )
    assert "<h3>A &lt;b&gt;card</h3>" in card
    assert "<code>code &lt;i&gt;</code>" in card
    assert "<a" not in card
    assert '<th scope="col">a</th>' in card
    assert "<td>&lt;2&gt;</td>" in card
    assert "<li>x</li>\n<li>y</li>" in card
    assert "z &amp; &lt;z&gt;" in card
    Page(card)
