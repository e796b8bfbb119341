"""Phrases that have become sentences or words are told."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.corpus.reviews import generate_reviews
from emhrnn.evaluation.phrases import PhraseLengths, collapse, count_phrase_lengths
from emhrnn.products.training import train

SMALL = {"model.embedding_size": 6, "model.word_size": 4, "model.phrase_size": 4, "model.sentence_size": 4}


@pytest.mark.parametrize(
    ("z", "told"),
    [
        ([0] * 99 + [1], "phrases are whole sentences: only 0.0% of"),
        ([1] * 100, "phrases are single words: 100.0% of"),
        ([0, 0, 0, 1] * 25, None),
        ([1], None),  # no word that might end a phrase or not
    ],
)
def test_collapse_of_one_sentence(z: list[int], told: str | None) -> None:
    found = collapse(PhraseLengths.of(count_phrase_lengths(np.array(z, dtype=bool))), sentences=1)
    assert found is None if told is None else (found or "").startswith(told)


@pytest.mark.parametrize(("settings", "told"), [({"em.impute": "prior", "em.hold_rate": False}, True), ({}, False)])
def test_training_tells_it(tmp_path: Path, settings: dict[str, object], told: bool) -> None:
    """No pi exceeds one half when training begins, so that the rule of the paper cuts nothing."""
    data = tmp_path / "reviews.jsonl"
    data.write_text(
        "".join(json.dumps({"text": r.text, "label": r.label}) + "\n" for r in generate_reviews(60, seed=0))
    )
    said: list[str] = []
    train(data, tmp_path / "run", settings={**SMALL, "training.epochs": 1, **settings}, progress=False, say=said.append)
    assert any("whole sentences" in line and "--set em.impute=rate" in line for line in said) == told
