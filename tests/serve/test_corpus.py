"""The corpus page: columns, scores, filters, downloads, and what is kept for how long."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree

import pytest
from fastapi.testclient import TestClient

from emhrnn.serve.app import application
from emhrnn.serve.corpus import FileSpec
from emhrnn.serve.limits import ServerLimits
from tests.behaviour.commands import BAD, GOOD
from tests.serve.test_guard import PEOPLE, finished

ROWS = [(GOOD, "good"), (BAD, "bad"), (GOOD + " Really.", "bad"), ("Soup.", "good")] * 3


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    lines = ["review,comment,verdict"] + [f'"{text}",note,{label}' for text, label in ROWS]
    (folder / "odd.csv").write_text("\n".join(lines), encoding="utf-8")
    (folder / "plain.csv").write_text(
        "\n".join(["text,label"] + [f'"{text}",{label}' for text, label in ROWS]), encoding="utf-8"
    )
    return folder


@pytest.fixture
def client(own_run: Path, data: Path, tmp_path: Path) -> Iterator[TestClient]:
    other = copytree(own_run, tmp_path / "other")
    app = application([own_run, Path(other)], data=data, limits=ServerLimits(rows=7, jobs=2))
    with TestClient(app, base_url="http://127.0.0.1") as opened:
        yield opened


def test_a_person_chooses_columns_whose_names_do_not_say(client: TestClient, data: Path) -> None:
    path = client.post("/corpus", data={"file": "odd.csv"}).url.path
    page = finished(client, path)
    assert "Which column has the text?" in page
    assert "--" not in re.sub(r"<[^>]*>", "", page)  # no words of the command line
    for form in ({"text": "nowhere"}, {"text": "review", "label": "review"}, {}):
        assert client.post(f"{path}/columns", data=form).status_code == 422
    chosen = client.post(f"{path}/columns", data={"text": "review", "label": "verdict"}).url.path
    page = finished(client, chosen)
    assert "<dt>documents</dt><dd>7</dd>" in page
    assert 'class="confusion"' in page


def test_an_upload_waits_for_its_columns(client: TestClient, data: Path) -> None:
    body = (data / "odd.csv").read_bytes()
    path = client.post("/corpus/upload", params={"name": "odd.csv"}, content=body).json()["job"]
    uploads = client.app.app.state.uploads  # type: ignore[attr-defined]
    assert "Which column has the text?" in finished(client, path)
    assert len(list(uploads.iterdir())) == 1
    page = finished(client, client.post(f"{path}/columns", data={"text": "review", "label": ""}).url.path)
    assert "Not compared with labels" in page
    path = client.post("/corpus/upload", params={"name": "odd.csv"}, content=body).json()["job"]
    finished(client, path)
    client.post(f"{path}/delete")
    assert list(uploads.iterdir()) == []
    assert client.get(path).status_code == 404


def test_counts_agree_and_a_row_is_found_again(client: TestClient) -> None:
    path = client.post("/corpus", data={"file": "plain.csv"}).url.path
    page = finished(client, path)
    assert "<dt>documents</dt><dd>7</dd>" in page
    assert "the first 7 are shown" in page
    assert 'value="error" selected' in page  # likely label errors first
    table = list(csv.DictReader(io.StringIO(client.get(f"{path}/rows.csv").text)))
    assert len(table) == 7
    assert {row["label"] for row in table} == {"good", "bad"}
    sure = [
        float(row["probability"]) for row in csv.DictReader(io.StringIO(client.get(f"{path}/rows.csv?order=sure").text))
    ]
    assert sure == sorted(sure, reverse=True)
    found = list(csv.DictReader(io.StringIO(client.get(f"{path}/rows.csv?q=REALLY").text)))
    assert found
    assert all("Really" in row["text"] for row in found)
    assert page.count('class="missed"') == sum(row["label"] != row["predicted"] for row in table)
    key = path.rpartition("/")[2]
    read = client.get("/", params={"job": key, "row": 2, "order": "file"}).text
    assert f'/?job={key}&amp;row=1&amp;order=file">Previous' in read
    assert f'/?job={key}&amp;row=3&amp;order=file">Next' in read
    for row, there, gone in ((1, "Next", "Previous"), (7, "Previous", "Next")):
        read = client.get("/", params={"job": key, "row": row, "order": "file"}).text
        assert f">{there}</a>" in read
        assert f">{gone}</a>" not in read


def test_scores_of_each_class(client: TestClient) -> None:
    path = client.post("/corpus", data={"file": "plain.csv"}).url.path
    page = finished(client, path)
    table = list(csv.DictReader(io.StringIO(client.get(f"{path}/rows.csv").text)))
    assert "always the most frequent" in page
    for name in ("good", "bad"):
        predicted = [row for row in table if row["predicted"] == name]
        told = re.search(rf">{name}</a></th><td class=\"number\">(\d+)</td><td class=\"number\">([^<]*)<", page)
        assert told is not None
        assert int(told[1]) == sum(row["label"] == name for row in table)
        if predicted:
            share = sum(row["label"] == name for row in predicted) / len(predicted)
            assert told[2] == f"{share:.0%}"
        else:
            assert f"{name} is never predicted" in page


def test_documents_of_the_training_file_are_counted(made: Path, data: Path, client: TestClient) -> None:
    (data / "seen.csv").write_bytes((made / "reviews.csv").read_bytes())
    page = finished(client, client.post("/corpus", data={"file": "seen.csv"}).url.path)
    assert "7 of these documents are in the training file" in page
    page = finished(client, client.post("/corpus", data={"file": "plain.csv"}).url.path)
    assert "in the training file" not in page


def test_the_run_is_chosen_and_said(client: TestClient) -> None:
    path = client.post("/corpus", data={"file": "plain.csv", "run": "other"}).url.path
    assert "Classified by <b>other</b>" in finished(client, path)
    read = client.get("/", params={"job": path.rpartition("/")[2], "row": 1}).text
    assert '<option value="other" selected>' in read
    assert client.post("/corpus", data={"file": "plain.csv", "run": "none"}).status_code == 422


def test_an_address_survives_a_restart(run: Path, data: Path) -> None:
    key = FileSpec("plain.csv").key
    with TestClient(application([run], data=data), base_url="http://127.0.0.1") as restarted:
        assert restarted.get(f"/corpus/{key}").status_code == 200
        assert "<dt>documents</dt><dd>12</dd>" in finished(restarted, f"/corpus/{key}")
        for other in (FileSpec("../secret.csv").key, "f!!", "fAAAA", "nothing"):
            assert restarted.get(f"/corpus/{other}", headers=PEOPLE).status_code == 404


def test_results_of_an_upload_survive_a_restart_and_its_documents_do_not(own_run: Path, data: Path) -> None:
    body = (data / "plain.csv").read_bytes()
    with TestClient(application([own_run]), base_url="http://127.0.0.1") as first:
        path = first.post("/corpus/upload", params={"name": "plain.csv"}, content=body).json()["job"]
        before = finished(first, path)
        table = first.get(f"{path}/rows.csv").text
    saved = own_run.with_name(f"{own_run.name}.jobs")
    (file,) = saved.iterdir()
    assert "soup" not in file.read_text(encoding="utf-8").casefold()
    (saved / "broken.json").write_text("{", encoding="utf-8")
    (saved / "other.json").write_text('{"rows": [3]}', encoding="utf-8")
    with TestClient(application([own_run]), base_url="http://127.0.0.1") as restarted:
        assert f'href="{path}">plain.csv</a>' in restarted.get("/corpus").text
        after = restarted.get(path).text
        for part in ("facts", "confusion", "scores"):  # the numbers are those from before
            found = rf'<(dl|table) class="{part}".*?</\1>'
            assert re.findall(found, after, re.DOTALL) == re.findall(found, before, re.DOTALL), part
        assert "the documents are gone" in after
        rows = list(csv.DictReader(io.StringIO(restarted.get(f"{path}/rows.csv").text)))
        assert rows == [row | {"text": ""} for row in csv.DictReader(io.StringIO(table))]
        read = restarted.get("/", params={"job": path.rpartition("/")[2], "row": 1}, follow_redirects=False)
        assert (read.status_code, read.headers["location"]) == (303, path)
        restarted.post(f"{path}/delete")
        assert not file.exists()


def test_a_file_of_the_data_folder_is_listed_and_read_again_after_a_restart(own_run: Path, data: Path) -> None:
    app = application([own_run], data=data)
    with TestClient(app, base_url="http://127.0.0.1") as first:
        path = first.post("/corpus", data={"file": "plain.csv"}).url.path  # stopped while it is running
    with TestClient(application([own_run], data=data), base_url="http://127.0.0.1") as restarted:
        assert f'href="{path}">plain.csv</a>' in restarted.get("/corpus").text
        restarted.get(path)
        page = finished(restarted, path)
        assert "<dt>documents</dt><dd>12</dd>" in page
        assert GOOD[:20] in page


def test_a_folder_that_cannot_be_written_is_told_in_the_log(
    own_run: Path, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own_run.with_name(f"{own_run.name}.jobs").write_text("in the way")
    with TestClient(application([own_run], data=data), base_url="http://127.0.0.1") as opened:
        assert 'class="confusion"' in finished(opened, opened.post("/corpus", data={"file": "plain.csv"}).url.path)
    assert "plain.csv will not outlive the server" in caplog.text


def test_failed_uploads_evict_nothing(client: TestClient) -> None:
    good = client.post("/corpus", data={"file": "plain.csv"}).url.path
    finished(client, good)
    for number in range(4):
        body = client.post("/corpus/upload", params={"name": f"{number}.parquet"}, content=b"no parquet").json()
        assert 'class="trouble"' in finished(client, body["job"])
    assert client.get(good).status_code == 200
    page = client.get("/corpus").text
    assert page.count(".parquet</a>") == 2
