"""A run of the evidence model is explained at every door: commands, estimator, files, API and viewer."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import emhrnn
from emhrnn import DocumentClassifier
from tests.behaviour.commands import BAD, GOOD, TINY, Cli, rows, write_reviews

fastapi = pytest.importorskip("fastapi", reason="needs the extra serve")

from fastapi.testclient import TestClient  # noqa: E402

from emhrnn.serve.app import application  # noqa: E402

TEXT = "The soup was good. We hated the waiter!"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from emhrnn.api import train
    from emhrnn.training.config import make_config

    folder = tmp_path_factory.mktemp("evidence")
    settings = [setting for setting in TINY if setting != "--set"]
    write_reviews(folder / "reviews.csv", 24)
    config = make_config(assignments=["model.name=evidence"], shared=settings)
    train(folder / "reviews.csv", folder / "run", config=config, progress=False)
    return folder


@pytest.fixture
def run(trained: Path) -> Path:
    return trained / "run"


def test_the_command(cli: Cli, run: Path, tmp_path: Path) -> None:
    shown = cli.ok("explain", run, TEXT).out
    assert "Decided most by" in shown
    assert "log-odds" in shown
    told = cli.ok("explain", run, TEXT, "--json", "--counterfactual").json
    assert told["decided_by"] == "evidence"
    assert "counterfactual" in told
    cli.ok("explain", run, TEXT, "--html", tmp_path / "why.html")
    assert "add up to phrases" in (tmp_path / "why.html").read_text()


def test_unknown_words_are_named(cli: Cli, run: Path) -> None:
    assert "Warning: 100% of the words are unknown" in cli.ok("explain", run, "Qwertz asdfg!").out


def test_faithfulness_of_exact_evidence(cli: Cli, run: Path, trained: Path, tmp_path: Path) -> None:
    given = ["paper", "faithfulness", run, trained / "reviews.csv", "--out", tmp_path, "--documents", "6", "--json"]
    told: Any = cli.ok(*given, "--no-figure").json
    defaults = [row for row in told["rows"] if row["default"]]
    assert [(row["method"], row["level"]) for row in defaults] == [
        ("evidence", level) for level in ("word", "phrase", "sentence")
    ]


def test_the_estimator() -> None:
    texts, labels = zip(*rows(24), strict=True)
    classifier = DocumentClassifier("evidence", epochs=1, settings={"data.min_count": 1}).fit(texts, labels)
    good, bad = classifier.explain([GOOD, BAD])
    assert good.evidence is not None
    assert bad.effects is not None
    np.testing.assert_allclose(
        [good.probabilities, bad.probabilities], classifier.predict_proba([GOOD, BAD]), atol=1e-6
    )


def test_scores_name_the_evidence(cli: Cli, run: Path, tmp_path: Path) -> None:
    data = tmp_path / "new.jsonl"
    data.write_text("".join(json.dumps({"text": text}) + "\n" for text in (TEXT, "Qwertz asdfg", "")))
    for suffix in ("jsonl", "csv"):
        cli.ok("predict", run, data, "--out", tmp_path / f"p.{suffix}", "--explain", "--workers", "1", "--quiet")
    path = emhrnn.load(run).explain(TEXT).decisive_path()
    assert path is not None
    phrase = path.phrase
    lines = (tmp_path / "p.jsonl").read_text().splitlines()
    told = [json.loads(line)["for"] for line in lines]
    assert told[0][0]["text"] == phrase.text
    assert told[0][0]["effect"] == pytest.approx(phrase.effect, abs=1e-5)
    assert told[2] is None
    with (tmp_path / "p.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert table[0]["for_1"] == phrase.text
    assert float(table[0]["for_1_effect"]) == pytest.approx(phrase.effect, abs=1e-5)


@pytest.fixture(scope="module")
def client(trained: Path) -> Iterator[TestClient]:
    with TestClient(application([trained / "run"], data=trained), base_url="http://127.0.0.1") as opened:
        yield opened


def test_the_api(client: TestClient) -> None:
    (told,) = client.post("/v1/explain", json={"text": TEXT}).json()["explanations"]
    assert told["decided_by"] == "evidence"
    assert told["sentences"][0]["phrases"][0]["evidence"].keys() == {"good", "bad"}
    refused = client.post("/v1/explain", json={"text": TEXT, "threshold": 0.5})
    assert refused.status_code == 422
    assert "has no threshold for the ends of phrases; leave it out" in refused.json()["error"]


def test_the_viewer(client: TestClient) -> None:
    page = client.post("/", data={"text": TEXT, "threshold": "0.5", "dropped": "0"})
    assert page.status_code == 200
    assert "points of probability" in page.text
    assert "Without 1 phrase" in page.text
    assert re.search(r'class="phrase [fa]\d', page.text)
    assert 'id="threshold"' not in page.text


def test_the_lexicon_of_a_file(client: TestClient) -> None:
    page = client.post("/corpus", data={"file": "reviews.csv"})
    key = page.url.path
    for _ in range(200):
        if client.get(f"{key}/state").json()["state"] != "running":
            break
    assert client.get(f"{key}/state").json()["state"] == "done"
    assert "soup" in client.get(key).text
