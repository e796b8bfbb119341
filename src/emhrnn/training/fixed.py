"""The settings that must stay the same when a run is resumed, and what they were before they existed."""

import hashlib
import json
from typing import Any

from emhrnn.errors import CheckpointError
from emhrnn.training.config import Config
from emhrnn.training.reads import read_settings

# What may be changed when a run is resumed: how long to train, and what has nothing to do with what is learned.
FREE = {"epochs", "patience", "threads", "checkpoint_seconds"}

# Settings that came when there were runs, and what runs are that do not name them.
LATER: dict[str, Any] = {
    "model.levels": 1,
    "em.upper_rate": 0.5,
    "model.skip": False,
    "model.cell": "lstm",
    "model.ngrams": False,
    "em.windows": 0,
    "model.pauses": False,
    "model.id_count": 1,
}

# Values that were retired, and what stands in for them: none of them matters once a model is trained.
RETIRED: dict[str, dict[Any, Any]] = {
    "em.estep": {"semi-markov": "local", "importance": "local", "reinforce": "local", "first-order": "local"},
    "em.impute": {"gibbs": "posterior"},
}

# Settings that were retired, with the value that is what is done now. They do not matter once a model is trained, but
# for model.restart: such a model is not built any more.
GONE: dict[str, Any] = {
    "model.restart": False,
    "em.samples": 8,
    "em.frozen_epochs": 0,
    "em.newton": False,
    "em.indicator_weight": 1.0,
    "em.detach_indicator": False,
}


def with_later(config: Any) -> Any:
    """Settings of a run as it was written, with those that came later and without values that were retired. What does
    not look like settings stays as it is: whoever needs them says so.

    Raises:
        CheckpointError: the model was trained with `model.restart`, which only version 0.1 can build.
    """
    if not (isinstance(config, dict) and all(isinstance(values, dict) for values in config.values())):
        return config
    filled = {section: dict(values) for section, values in config.items()}
    for place, value in LATER.items():
        section, _, name = place.partition(".")
        if section in filled:
            filled[section].setdefault(name, value)
    for place, instead in RETIRED.items():
        section, _, name = place.partition(".")
        if section in filled and (value := filled[section].get(name)) in list(instead):  # it may be anything
            filled[section][name] = instead[value]
    if filled.get("model", {}).get("restart") is True:
        raise CheckpointError("the run has model.restart = true, which only emhrnn 0.1 can load; train anew without it")
    for place in GONE:
        section, _, name = place.partition(".")
        filled.get(section, {}).pop(name, None)
    return filled


def fixed_settings(config: Config) -> dict[str, Any]:
    """By names such as `model.cell`; those that the model does not read may change, or come new."""
    return {
        f"{section}.{name}": value
        for section, values in read_settings(config).items()
        for name, value in values.items()
        if not (section == "training" and name in FREE)
    }


def unknown_setting(written: dict[str, dict[str, Any]], config: Config) -> str | None:
    """The first fixed one that a run does not name, nor anybody knows what it was without."""
    known = {f"{section}.{name}" for section, values in written.items() for name in values}
    return next((place for place in fixed_settings(config) if place not in known), None)


def difference(saved: dict[str, Any] | str, config: Config) -> str | None:
    """What differs from the settings that were saved, in words; None where nothing does. Checkpoints from before the
    settings themselves were saved have a checksum of all of them."""
    if isinstance(saved, str):
        return None if saved == checksum(config) else "other settings than now (the checksums differ)"
    for place, now in fixed_settings(config).items():
        if place not in saved and place not in LATER:
            return f"no setting {place}, which came later, and is {now!r} now"
        before = saved.get(place, LATER.get(place))
        if before != now:
            return f"{place} = {before!r}, which is {now!r} now"
    for place, usual in GONE.items():
        if saved.get(place, usual) != usual and place != "em.samples":  # which `em.estep` tells
            return f"{place} = {saved[place]!r}, a setting of emhrnn 0.1 that is gone"
    return None


def checksum(config: Config) -> str:
    values = config.model_dump(exclude={"training": FREE})
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
