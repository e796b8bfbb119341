"""Settings of older runs: what they are in this version, and what must stay the same when a run is resumed."""

import math
from typing import Any

import numpy as np

from emhrnn.errors import CheckpointError
from emhrnn.models.table import MODELS
from emhrnn.text.language import USUAL
from emhrnn.training.config import Config

# What may be changed when a run is resumed: how long to train, and what has nothing to do with what is learned.
FREE = {"epochs", "patience", "threads", "checkpoint_seconds"}

# Values of version 0.1 that are gone, and what stands in for them: they do not matter once a model is trained.
RETIRED: dict[str, dict[Any, Any]] = {
    "em.estep": {"semi-markov": "local", "importance": "local", "reinforce": "local", "first-order": "local"},
    "em.impute": {"gibbs": "rate", "posterior": "rate"},
}

# Settings that are gone, with the value that is what is done now.
GONE: dict[str, Any] = {
    "model.restart": False,
    "model.levels": 1,
    "model.customize": "linear",
    "em.frozen_epochs": 0,
    "em.newton": False,
    "em.indicator_weight": 1.0,
    "em.detach_indicator": False,
    "em.temperature": 1.0,
    "em.exact_limit": 20,
}


WITH_NGRAMS = "em-hrnn+ngrams"  # what an em-hrnn with `model.ngrams` of version 0.1 is now


def migrated(config: Any) -> Any:
    """The settings of a run of version 0.1, in which every run names those of all models, as this version has them: the
    model's own are kept, all others are dropped. What does not look like settings stays as it is: whoever needs them
    says so.

    Raises:
        CheckpointError: the model has `model.restart` or several `model.levels`, which only version 0.1 can build.
    """
    if not (isinstance(config, dict) and all(isinstance(values, dict) for values in config.values())):
        return config
    model = config.get("model", {})
    if not (isinstance(name := model.get("name"), str) and name in MODELS):
        return config
    for key in ("restart", "levels"):
        usual = GONE[f"model.{key}"]
        if name == "em-hrnn" and model.get(key, usual) != usual:
            raise CheckpointError(
                f"the run has model.{key} = {model[key]!r}, which only emhrnn 0.1 can load; train again without it"
            )
    if name == "em-hrnn" and model.get("ngrams") is True:
        name = WITH_NGRAMS
    fields = MODELS[name].config.model_fields
    kept = {key: value for key, value in model.items() if key in fields} | {"name": name}
    for key in ("C", "fit_epochs"):  # in 0.1, none was the model's own default
        if kept.get(key, ...) is None:
            kept[key] = fields[key].default
    now = {**config, "model": kept}
    if isinstance(data := now.get("data"), dict):
        now["data"] = {"language": USUAL, "folds": 0, **data}  # all text was read as English
    em = now.pop("em", None)
    if MODELS[name].learns != "fit" and isinstance(training := now.get("training"), dict):
        now["training"] = {"average_epochs": 0.0, **training}  # weights were not averaged
    if name == "transformer":
        kept.setdefault("attention_dropout", None)
        kept.setdefault("bfloat16", False)
    if name == "evidence":
        kept.setdefault("table_decay", 0.0)
        kept.setdefault("mixing", False)
        kept.setdefault("rationales", fields["rationales"].default)  # nothing changes without marked parts
        kept.setdefault("rate", (em or {}).get("rate", fields["rate"].default))
    if MODELS[name].learns == "em" and em is not None:
        gone = {place.partition(".")[2] for place in GONE} | {"samples", "upper_rate"}
        now["em"] = {key: _in_place_of(f"em.{key}", value) for key, value in em.items() if key not in gone}
    return now


def migrated_tensors(
    model: str, tensors: dict[str, Any], shares: Any = None, *, checkpoint: bool = False
) -> dict[str, Any]:
    """The weights of an em-hrnn that had n-grams of its own, under the names of `em-hrnn+ngrams`; all others as they
    are. `shares` are those that version 0.1 kept in the header of the file. Names of a `checkpoint` are places:
    model/..., optimizer/KEY/..., objective/...

    Raises:
        CheckpointError: the shares are damaged.
    """
    place = "model/" if checkpoint else ""
    if model != WITH_NGRAMS or f"{place}share" in tensors:
        return tensors

    def renamed(name: str) -> str:
        parts = name.split("/")
        if parts[-1] != "ngrams.table" and parts[0] != "objective":
            parts[-1] = f"network.{parts[-1]}"
        return "/".join(parts)

    now = {renamed(name): tensor for name, tensor in tensors.items()}
    try:
        values = [1.0 if shares is None else float(shares[name]) for name in ("recurrent", "common", "rare", "pairs")]
    except (TypeError, KeyError, ValueError):
        values = [math.nan]
    if not all(0 <= value < math.inf for value in values):
        raise CheckpointError(f"the weights are corrupt (shares {shares!r}); copy the run again or train again")
    return {**now, f"{place}share": np.array(values)}


def _in_place_of(place: str, value: Any) -> Any:
    instead = RETIRED.get(place, {})
    return instead[value] if value in list(instead) else value  # it may be anything


def fixed_settings(config: Config) -> dict[str, Any]:
    """The settings that must stay the same when a run is resumed, by names such as `model.cell`."""
    return {
        f"{section}.{name}": value
        for section, values in config.read_settings().items()
        for name, value in values.items()
        if not (section == "training" and name in FREE)
    }


def unknown_setting(written: dict[str, dict[str, Any]], config: Config) -> str | None:
    """The first fixed setting that the settings of a run, as written, do not have."""
    known = {f"{section}.{name}" for section, values in written.items() for name in values}
    return next((place for place in fixed_settings(config) if place not in known), None)


def difference(saved: dict[str, Any], config: Config) -> str | None:
    """How the settings that a checkpoint was saved with differ, in words; None where they do not."""
    now = fixed_settings(config)
    for place, value in saved.items():
        gone = place in GONE and value != GONE[place]
        if gone or (place in RETIRED and value in list(RETIRED[place])):
            return f"{place} = {value!r}, which only emhrnn 0.1 has"
    sections: dict[str, dict[str, Any]] = {"model": {"name": config.model.name}}
    for place, value in saved.items():
        section, _, name = place.partition(".")
        sections.setdefault(section, {})[name] = value
    before = {
        f"{section}.{name}": value for section, values in migrated(sections).items() for name, value in values.items()
    }
    for place, value in now.items():
        if place not in before:
            return f"no setting {place}, which came later, and is {value!r} now"
        if before[place] != value:
            return f"{place} = {before[place]!r}, which is {value!r} now"
    return None
