"""Which settings the model of a run reads. The others are nothing to it: they may change, and need not be told."""

from typing import Any

from emhrnn.models.table import MODELS
from emhrnn.training.config import Config, make_config

FITTED = {"class_weight", "calibrate", "seed", "threads"}  # of the section `training`, what a fit in one go reads


def read_settings(config: Config) -> dict[str, dict[str, Any]]:
    """Those that the model reads, by section and name."""
    model = MODELS[config.model.name]
    training = True if model.learns != "fit" else FITTED
    sections: dict[str, Any] = {"data": True, "model": {"name", *model.reads}, "training": training}
    return config.model_dump(include={**sections, "em": True} if model.learns == "em" else sections)


def changed_settings(config: Config) -> dict[str, Any]:
    """Those of them that are not the model's own defaults, by names such as `training.epochs`."""
    usual = read_settings(make_config(assignments=[f"model.name={config.model.name}"]))
    return {
        f"{section}.{name}": value
        for section, values in read_settings(config).items()
        for name, value in values.items()
        if value != usual[section][name]
    }
