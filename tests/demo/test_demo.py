"""`make demo` in small: from nothing to a report, without a warning."""

import json
import warnings
from pathlib import Path

import pytest

from emhrnn import demo


def test_a_small_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TEST", 60)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = demo.run_demo(
            tmp_path, documents=300, assignments=["training.epochs=4"], progress=False, say=said.append
        )
    assert said == [f"300 reviews to learn from and 60 to test on are in {tmp_path / 'data'}."]
    report = json.loads((tmp_path / "report.json").read_text())
    assert report == json.loads(json.dumps(made.to_dict()))
    assert [row["name"] for row in report["rows"]] == ["majority class", "TF-IDF + linear SVM", "Phrase evidence"]
    assert all(0 < row["accuracy"] < 1 for row in report["rows"])
    assert report["documents"] == {"train": 300, "valid": 300, "test": 60}
    page = (tmp_path / "report.html").read_text()
    assert all(explanation.text.split()[0] in page for explanation in made.explanations)
    again = demo.run_demo(tmp_path / "again", documents=300, assignments=["training.epochs=4"], progress=False)
    assert again.rows == made.rows
