"""Run folders of version 0.1 and packed files of version 0.2 (tests/behaviour/runs) load and predict as they did; run
folders train on."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import emhrnn

RUNS = Path(__file__).with_name("runs")
NAMES = ["em-hrnn", "hn-att", "evidence"]


@pytest.mark.parametrize("name", [*NAMES, "evidence.emhrnn"])
def test_an_old_run_predicts_as_it_did(name: str) -> None:
    expected = json.loads((RUNS / "expected.json").read_text(encoding="utf-8"))
    found = emhrnn.load(RUNS / name).predict_proba(expected["texts"])
    np.testing.assert_allclose(found, expected["probabilities"][name.removesuffix(".emhrnn")], atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_an_old_run_trains_on(name: str, tmp_path: Path) -> None:
    run = shutil.copytree(RUNS / name, tmp_path / name)
    before = (run / "history.jsonl").read_text(encoding="utf-8").splitlines()
    emhrnn.train(None, run, settings={"training.epochs": 4}, resume=True, progress=False)
    after = (run / "history.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["epoch"] for line in after] == [0, 1, 2, 3]
    assert after[:3] == before
