"""Phrases against other units, at equal numbers of words."""

import json
from pathlib import Path

import numpy as np
import pytest

from emhrnn.errors import ConfigError
from emhrnn.paper.explanations import units
from emhrnn.paper.explanations.methods import ReadTexts
from emhrnn.paper.explanations.units import compare_units
from tests.explain.evidence import REVIEW, make_run
from tests.explain.runs import small_run


def test_units_cover_the_words_and_stay_in_sentences() -> None:
    run = make_run(("neg", "pos"))
    texts = ReadTexts.of(run, *run.encoder.locate([REVIEW, "Not good. Never came back."]))
    for kind in units.KINDS:
        of_word = units._units(texts, kind)
        assert set(np.diff(of_word)) <= {0, 1}
        assert len(set(zip(of_word, texts.batch.sentence_of_word, strict=True))) == of_word[-1] + 1
    assert len(set(units._units(texts, "phrases"))) == texts.z.sum()


def test_as_many_words_are_shown_of_every_kind() -> None:
    scores, unit = np.array([1.0, 1.0, 3.0, 3.0, 3.0, 0.0]), np.array([0, 0, 1, 1, 1, 2])
    shown = units._shown(scores, unit, np.array([0, 6]), 0.5)
    assert shown.tolist() == [False, False, True, True, True, False]
    assert units._shown(scores, unit, np.array([0, 2, 6]), 0.5).tolist() == [True, False, True, True, False, False]


def test_a_table_for_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(("neg", "pos"))
    rows = [
        {"text": text, "label": "pos", "split": "validation", "evidence_tokens": [[1, 3]]}
        for text in (REVIEW, "Not good. Never came back.", "Very cold soup. Good room.")
    ]
    (tmp_path / "movies.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setattr(units, "load_run", lambda folder: run)
    monkeypatch.setattr(units, "about_run", lambda run, folder: {"run": "r", "model": "evidence", "weights": "w"})
    made = compare_units(tmp_path / "run", tmp_path / "movies.jsonl", tmp_path)
    assert [row["units"] for row in made["rows"]] == list(units.KINDS)
    assert "Phrases less other units" in (tmp_path / "units.md").read_text()
    assert 0 < made["rows"][0]["AUPRC"]["value"] <= 1
    monkeypatch.setattr(units, "load_run", lambda folder: small_run("hn-att"))
    with pytest.raises(ConfigError, match="give evidence"):
        compare_units(tmp_path / "run", tmp_path / "movies.jsonl", tmp_path)
