"""Settings of runs of version 0.1, and which differences a resumed run is refused for."""

import json
from pathlib import Path
from typing import Any

import pytest

from emhrnn.errors import CheckpointError
from emhrnn.models.settings import EvidenceConfig
from emhrnn.training.compatibility import FREE, difference, fixed_settings, migrated, unknown_setting
from emhrnn.training.config import make_config, settings_of, validated

CONFIG = make_config("paper")
GONE = "gone"
LATER = {
    "data.folds": 0,
    "data.language": "en",
    "model.mixing": False,
    "model.rate": 0.23,
    "model.rationales": EvidenceConfig().rationales,
    "model.table_decay": 0.0,
    "training.average_epochs": 0.0,
}  # what older runs stand for
RUNS = Path(__file__).parents[1] / "behaviour" / "runs"


def written(name: str) -> dict[str, Any]:
    """The settings of a run of version 0.1, which names those of all models."""
    settings: dict[str, Any] = json.loads((RUNS / name / "config.json").read_text(encoding="utf-8"))["config"]
    return settings


@pytest.mark.parametrize(
    ("name", "now"), [("em-hrnn", "em-hrnn+ngrams"), ("hn-att", "hn-att"), ("evidence", "evidence")]
)
def test_a_run_keeps_the_settings_of_its_own_model_and_no_others(name: str, now: str) -> None:
    before = written(name)
    config = validated(migrated(before))
    read = {
        f"{section}.{key}": value for section, values in config.model_dump().items() for key, value in values.items()
    }
    assert read.keys() == settings_of(config.model.name).keys()
    for place, value in read.items():
        section, _, key = place.partition(".")
        expected = {**LATER, "model.name": now}
        assert value == (expected[place] if place in expected else before[section][key])
    assert unknown_setting(migrated(before), config) is None
    assert migrated(migrated(before)) == migrated(before)


def test_models_that_are_fitted_at_once_get_no_settings_of_the_loop() -> None:
    fitted = {"model": {"name": "tfidf-svm", "max_features": 10}, "training": {"seed": 0}}
    assert migrated(fitted)["training"] == {"seed": 0}


def test_none_was_the_default_of_the_model() -> None:
    before = written("hn-att")
    for name, C, epochs in (("tfidf-svm", 1.0, None), ("sswe-svm", 0.01, 3), ("nb-lr", None, None)):
        before["model"] |= {"name": name, "C": None, "fit_epochs": None}
        now = validated(migrated(before)).model.model_dump()
        assert (now["C"], now.get("fit_epochs")) == (C, epochs)


def test_evidence_takes_its_rate_along() -> None:
    before = written("evidence")
    before["model"]["segmentation"], before["em"]["rate"] = "random", 0.4
    assert validated(migrated(before)).model.model_dump()["rate"] == 0.4


@pytest.mark.parametrize("estep", ["semi-markov", "importance", "reinforce", "first-order"])
def test_a_retired_value_still_loads_but_is_not_resumed(estep: str) -> None:
    before = written("em-hrnn")
    before["em"] |= {"estep": estep, "impute": "gibbs", "newton": True, "samples": 3}
    read = validated(migrated(before)).em
    assert (read.estep, read.impute) == ("local", "rate")
    assert before["em"]["estep"] == estep  # not changed in place
    told = difference({**fixed_settings(CONFIG), "em.estep": estep}, CONFIG)
    assert told is not None
    assert estep in told


@pytest.mark.parametrize(("setting", "value"), [("restart", True), ("levels", 2)])
def test_a_model_that_is_gone_is_refused_by_version(setting: str, value: object) -> None:
    before = written("em-hrnn")
    before["model"][setting] = value
    with pytest.raises(CheckpointError, match=rf"model.{setting} = {value}.* emhrnn 0\.1"):
        migrated(before)
    before["model"]["name"] = "hn-att"  # which did not read it
    assert validated(migrated(before)).model.name == "hn-att"


def test_what_is_no_settings_is_left_to_validation() -> None:
    for broken in (None, [], {"model": 3}, {"model": {"name": ["hn-att"]}}, {"model": {"name": "another"}}):
        assert migrated(broken) == broken
    before = written("em-hrnn")
    before["em"]["estep"] = ["local"]  # not even hashable
    assert migrated(before)["em"]["estep"] == ["local"]


def test_what_may_change_is_not_fixed() -> None:
    fixed = fixed_settings(CONFIG)
    assert "model.cell" in fixed
    assert not {f"training.{name}" for name in FREE} & fixed.keys()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"model.cell": "gru"}, "model.cell = 'gru', which is 'lstm' now"),
        ({"em.pace": GONE}, "no setting em.pace, which came later, and is 1.0 now"),
        ({"model.odd": 3}, None),  # of a version that had it, or of another model
        ({"em.newton": False, "em.samples": 3, "model.restart": False}, None),
        ({"em.newton": True}, "em.newton = True, which only emhrnn 0.1 has"),
    ],
)
def test_differences_are_named(change: dict[str, Any], told: str | None) -> None:
    saved = {**fixed_settings(CONFIG), **change}
    assert difference({name: value for name, value in saved.items() if value != GONE}, CONFIG) == told


@pytest.mark.parametrize("model", ["tfidf-lr", "evidence", "em-hrnn"])
def test_settings_of_today_stay_as_they_are(model: str) -> None:
    """Records of `emhrnn compare` hold the settings that a row reads, and are compared after the migration."""
    settings = make_config(assignments=[f"model.name={model}"]).read_settings()
    assert migrated(settings) == settings
