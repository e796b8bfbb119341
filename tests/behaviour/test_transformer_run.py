"""A run of the transformer row is complete in itself, and begins with what Sun et al. used."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import load, train
from emhrnn.errors import CheckpointError, ConfigError, ExtraError
from tests.models.tiny_bert import make_bert

pytest.importorskip("transformers", reason="needs the extra `transformers`")

TEXTS = ["The room was nice and clean.", "The rooms was old!!"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "bert").mkdir()
    return make_bert(tmp_path / "bert")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.jsonl"
    path.write_text("".join(json.dumps({"text": TEXTS[i % 2], "label": i % 2}) + "\n" for i in range(20)))
    return path


@pytest.mark.parametrize("frozen", [False, True])
def test_a_run_needs_its_source_no_more(source: Path, data: Path, tmp_path: Path, frozen: bool) -> None:
    settings = {"model.name": "transformer", "model.pretrained": str(source), "model.frozen": frozen}
    trained = train(data, tmp_path / "run", settings={**settings, "training.epochs": 1}, progress=False)
    before = trained.model.predict_proba(TEXTS)
    assert trained.model.run.config.training.learning_rate == 2e-5
    shutil.rmtree(source)
    assert np.array_equal(load(tmp_path / "run").predict_proba(TEXTS), before)
    assert not [file for file in (tmp_path / "run").rglob("*") if file.suffix in {".bin", ".pt", ".pkl"}]
    if not frozen:
        more = train(None, tmp_path / "run", settings={"training.epochs": 2}, resume=True, progress=False)
        assert len(more.fitted.epochs) == 2


def test_a_run_without_its_tokenizer(source: Path, data: Path, tmp_path: Path) -> None:
    settings = {"model.name": "transformer", "model.pretrained": str(source), "model.frozen": True}
    train(data, tmp_path / "run", settings=settings, progress=False)
    shutil.rmtree(tmp_path / "run" / "encoder")
    with pytest.raises(CheckpointError, match=r"encoder cannot be read: .*; copy the run again or train again"):
        load(tmp_path / "run")


def test_a_run_without_the_library(source: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"model.name": "transformer", "model.pretrained": str(source), "model.frozen": True}
    train(data, tmp_path / "run", settings=settings, progress=False)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ExtraError, match=r"^the model transformer needs .*'emhrnn\[transformers\]'"):
        load(tmp_path / "run")


def test_what_is_missing_is_told_before_any_data_is_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"needs pretrained weights; set model\.pretrained"):
        train(tmp_path / "none.csv", tmp_path / "run", settings={"model.name": "transformer"}, progress=False)
    settings = {"model.name": "transformer", "model.pretrained": str(tmp_path / "nowhere")}
    with pytest.raises(ConfigError, match=r"nowhere: no such folder; give a folder with config\.json"):
        train(tmp_path / "none.csv", tmp_path / "run", settings=settings, progress=False)
