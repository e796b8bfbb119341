"""Phrases that have become sentences or words are told."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.api import train, with_settings
from emhrnn.corpus.reviews import generate_reviews
from emhrnn.evaluation.scores import PhraseLengths, collapse, count_phrase_lengths
from emhrnn.training.config import make_config
from emhrnn.training.em_objective import advice

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


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"em.impute": "prior", "em.hold_rate": False, "model.pauses": False}, True), ({}, False)],
)
def test_training_tells_it(tmp_path: Path, settings: dict[str, object], told: bool) -> None:
    """No pi exceeds one half when training begins, so that the rule of the paper cuts nothing."""
    data = tmp_path / "reviews.jsonl"
    data.write_text(
        "".join(json.dumps({"text": r.text, "label": r.label}) + "\n" for r in generate_reviews(60, seed=0))
    )
    said: list[str] = []
    train(data, tmp_path / "run", settings={**SMALL, "training.epochs": 1, **settings}, progress=False, say=said.append)
    assert any("whole sentences" in line and "--set em.impute=rate" in line for line in said) == told


@pytest.mark.parametrize(
    ("settings", "ends", "told"),
    [
        ({"em.impute": "prior"}, 0.1, "--set em.impute=rate --set em.hold_rate=true keeps em.rate of them"),
        ({"em.hold_rate": False}, 0.4, "--set em.impute=rate --set em.hold_rate=true keeps em.rate of them"),
        ({}, 0.4, "sentence ends alone are 40.0% of the words, so em.rate = 0.23 leaves no others; raise it"),
        ({"em.rate": 0.95}, 0.1, "em.rate is 0.95; give another"),
    ],
)
def test_advice_is_not_what_is_set_already(settings: dict[str, object], ends: float, told: str) -> None:
    assert advice(with_settings(make_config(), settings).em, ends) == told


def test_very_short_sentences_are_told_with_what_helps(tmp_path: Path) -> None:
    data = tmp_path / "short.jsonl"
    lines = [{"text": f"Good {i}. So good." if i % 2 else f"Bad {i}. So bad.", "label": i % 2} for i in range(60)]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said: list[str] = []
    train(data, tmp_path / "run", settings={**SMALL, "training.epochs": 2}, progress=False, say=said.append)
    assert any("whole sentences" in line and line.endswith("leaves no others; raise it") for line in said), said
