"""Small chunks, so that a few rows make many of them."""

import json
from pathlib import Path

import pytest

from tests.behaviour.commands import BAD, GOOD


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.scoring.chunks.ROWS", 5)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    """43 rows: 9 chunks of 5."""
    path = tmp_path / "reviews.jsonl"
    rows = [{"id": f"r{i}", "text": f"{GOOD if i % 3 else BAD} Visit {i}. " * (1 + i % 4)} for i in range(43)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path
