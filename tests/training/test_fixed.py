"""Which settings a run is resumed with, and which differences are told."""

from typing import Any

import pytest

from emhrnn.errors import CheckpointError
from emhrnn.training.config import make_config, validated
from emhrnn.training.fixed import FREE, checksum, difference, fixed_settings, with_later

CONFIG = make_config("paper", assignments=["model.id_count=1"])  # as before all later settings
GONE = "gone"


def test_what_may_change_or_is_not_read_is_not_fixed() -> None:
    fixed = fixed_settings(CONFIG)
    assert "model.cell" in fixed
    assert not {f"training.{name}" for name in FREE} & fixed.keys()
    assert "model.means" not in fixed  # of bag-of-means


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, None),
        ({"model.cell": "gru"}, "model.cell = 'gru', which is 'lstm' now"),
        ({"model.cell": GONE, "model.pauses": GONE}, None),
        ({"em.pace": GONE}, "no setting em.pace, which came later, and is 1.0 now"),
        ({"model.odd": 3}, None),  # of a version that had it, or of another model
        ({"em.newton": False, "em.samples": 3}, None),
        ({"em.newton": True}, "em.newton = True, a setting of emhrnn 0.1 that is gone"),
    ],
)
def test_differences_are_named(change: dict[str, Any], told: str | None) -> None:
    saved = {**fixed_settings(CONFIG), **change}
    assert difference({name: value for name, value in saved.items() if value != GONE}, CONFIG) == told


def test_older_checkpoints_know_a_checksum() -> None:
    assert difference(checksum(CONFIG), CONFIG) is None
    assert difference(checksum(CONFIG), make_config()) == "other settings than now (the checksums differ)"


def test_runs_are_what_they_were_before_a_setting_existed() -> None:
    written = CONFIG.model_dump()
    del written["model"]["id_count"], written["em"]["windows"]
    assert with_later(written) == {
        **written, "model": {**written["model"], "id_count": 1}, "em": {**written["em"], "windows": 0}
    }  # fmt: skip
    for broken in (None, [], {"model": 3}):
        assert with_later(broken) == broken


@pytest.mark.parametrize("estep", ["semi-markov", "importance", "reinforce", "first-order"])
def test_a_retired_value_still_loads_but_is_not_resumed(estep: str) -> None:
    written = CONFIG.model_dump()
    written["em"] |= {"estep": estep, "impute": "gibbs", "newton": True, "samples": 3}
    read = validated(with_later(written)).em
    assert (read.estep, read.impute) == ("local", "posterior")
    assert written["em"]["estep"] == estep  # not changed in place
    told = difference({**fixed_settings(CONFIG), "em.estep": estep}, CONFIG)
    assert told is not None
    assert estep in told


def test_a_model_that_restarts_words_is_refused_by_version() -> None:
    written = CONFIG.model_dump()
    written["model"]["restart"] = False
    assert validated(with_later(written)) == CONFIG
    written["model"]["restart"] = True
    with pytest.raises(CheckpointError, match=r"model.restart = true.* emhrnn 0\.1"):
        with_later(written)


def test_an_odd_value_is_left_to_validation() -> None:
    written = CONFIG.model_dump()
    written["em"]["estep"] = ["local"]  # not even hashable
    assert with_later(written)["em"]["estep"] == ["local"]
