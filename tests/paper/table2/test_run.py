"""An encoder in the place of Bert-base, from the command to the report."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from emhrnn.files import sha256
from tests.behaviour.commands import Cli
from tests.models.tiny_bert import make_bert

pytest.importorskip("transformers", reason="needs the extra `transformers`")

SET, ROW = "yelp_recsys2013_10k", "mini, frozen"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    return Cli(capsys, monkeypatch)


def yelp(folder: Path) -> Path:
    texts = ["The room was nice and clean.", "The rooms was old!!"]
    with gzip.open(folder / f"{SET}.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"text": texts[i % 2], "label": i % 2}) + "\n" for i in range(60))
    return folder


def test_a_frozen_encoder_is_run_once_and_its_record_names_no_place(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "here" / "mini").mkdir(parents=True)
    folder = make_bert(tmp_path / "here" / "mini")
    out = tmp_path / "out"
    given = [
        "paper", "table2", "--data", yelp(tmp_path), "--out", out, "--work", out, "--frozen", "--rows", ROW,
        "--seeds", "3", "--processes", "1", "--quiet", "--json",
    ]  # fmt: skip
    table = cli.ok(*given, "--pretrained", folder).json
    (row,) = table["rows"]  # type: ignore[misc]
    assert (row["model"], row["seeds"], row["comparable"], table["missing"]) == (ROW, 1, False, [])
    assert row["accuracy"] == 1.0
    assert row["settings"] == ["model.pretrained=mini", "model.frozen=true", "model.head=32", "model.tail=96"]
    assert "Nothing is drawn by chance in mini, frozen" in str(table["method"])
    (record,) = (out / "runs").glob("*.json")
    told = json.loads(record.read_text())["arguments"]
    assert told["settings"]["model"]["pretrained"] == "mini"
    assert told["pretrained_sha256"] == sha256(folder / "model.safetensors")
    for file in (record, *out.glob("table*")):
        assert str(tmp_path) not in file.read_text(), file
    assert "mini, frozen (model.pretrained=mini," in (out / "table2.md").read_text()

    moved = shutil.move(tmp_path / "here", tmp_path / "there") / "mini"
    before = record.read_text()
    assert cli.ok(*given, "--pretrained", moved, "--report").json["missing"] == []
    cli.ok(*given, "--pretrained", moved)
    assert record.read_text() == before  # it was not done again
    (moved / "model.safetensors").write_bytes(b"other weights")
    assert "was done with pretrained_sha256 = " in cli.error(*given, "--pretrained", moved)
    assert "is no row of the table; give some of" in cli.error(*given, "--pretrained", moved, "--rows", "Bert-base")
    assert "--frozen is about pretrained weights, and none are given" in cli.error(*given)
