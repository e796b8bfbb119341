"""Documents with several labels, or none, on the pages."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra serve")

import torch
from fastapi.testclient import TestClient

import emhrnn
from emhrnn.api import labels_of
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.serve.app import application
from emhrnn.serve.document import Readings
from emhrnn.serve.engine import RequestText
from emhrnn.training.run import load_run, save_weights
from tests.behaviour.commands import BAD, GOOD, SMALL_EM
from tests.serve.test_guard import finished

TEXTS = [f"{GOOD if i % 2 else BAD} Visit {i}." for i in range(12)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its classes are as likely as not, so that some documents have one label, some several and some none."""
    folder = tmp_path_factory.mktemp("several")
    rows = [{"text": text, "label": ["plot", "cast"] if i % 2 else ["music"]} for i, text in enumerate(TEXTS)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    emhrnn.train(folder / "data.jsonl", folder / "run", settings=SMALL_EM, progress=False)
    trained = load_run(folder / "run")
    assert isinstance(trained.model, EMHRNN)
    with torch.no_grad():
        trained.model.output.bias.copy_(torch.tensor([2.0, -2.0, 2.0]))
    save_weights(folder / "run", trained, 0)
    return folder / "run"


@pytest.fixture(scope="module")
def client(run: Path) -> Iterator[TestClient]:
    with TestClient(application([run]), base_url="http://127.0.0.1") as opened:
        yield opened


def test_labels_are_a_set(client: TestClient, run: Path, tmp_path: Path) -> None:
    """In whichever order a file names them; and one that the model does not know is wrong."""
    found = emhrnn.load(run).predict(TEXTS)
    assert {len(labels) for labels in found} != {1}
    rows = [{"text": text, "label": list(reversed(labels))} for text, labels in zip(TEXTS, found, strict=True)]
    rows.append({"text": GOOD, "label": [*emhrnn.load(run).predict([GOOD])[0], "new"]})
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    answer = client.post("/corpus/upload?name=rows.jsonl", content=body)
    page = finished(client, answer.json()["job"])
    assert "12 of 13" in page
    sure = [int(number) for number in re.findall(r'<td class="number">>?(\d+)%</td>', unescape(page))]
    assert len(sure) == 13
    assert min(sure) >= 50  # none of its decisions went against what it holds more likely


def test_what_if_names_all_labels(client: TestClient, run: Path) -> None:
    served = load_run(run)
    reading = Readings().read(served, "run", RequestText(GOOD), None)
    without = reading.without([0])
    assert without is not None
    assert without.predicted == labels_of(served, without.probabilities[None].astype("float32"))[0]
    page = unescape(client.post("/part/read", data={"text": GOOD, "dropped": "0"}).text)
    headlines = [part.partition("<")[0].strip() for part in page.split('<h2 class="prediction">')[1:]]
    named = [", ".join(labels) or "no label" for labels in (reading.explanation.predicted, without.predicted)]
    assert headlines == named
    assert ("changed" in page) == (named[0] != named[1])
