"""A job that trains says how far it is: an epoch may take an hour."""

import json
from pathlib import Path

import pytest

from emhrnn.paper.comparison import rows
from emhrnn.training.config import make_config
from emhrnn.training.data import Named


def test_progress_moves_within_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[float, str]] = []
    monkeypatch.setattr(rows, "EVERY", 0.0)
    monkeypatch.setattr(rows, "report_progress", lambda folder, share, what: told.append((share, what)))
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps({"text": f"soup {x}", "label": x}) + "\n" for x in 20 * "ab"))
    config = make_config(
        assignments=(
            "model.name=lstm", "model.embedding_size=4", "model.word_size=4", "training.epochs=2",
            "training.batch_documents=9",
        )
    )  # fmt: skip
    trained = rows.train_or_resume(tmp_path / "run", Named(path=data), config, vectors=None)
    assert len(trained.fitted.epochs) == 2
    shares = [round(share * 3 * 4) for share, _ in told]  # of four batches in an epoch, and a third epoch to test in
    assert shares == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8]
    assert told[0][1] == "reading"
    assert told[4][1] == "epoch 1 of 2"
    assert told[5][1].startswith("epoch 1 of 2, valid ")
    assert told[6][1].startswith("epoch 2 of 2, valid ")
