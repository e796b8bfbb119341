"""The learning rate and the phase of training as functions of where it stands: nothing to save, nothing to restore."""

import math
from typing import Literal

from emhrnn.training.config import Config, EMConfig, TrainingConfig

Phase = Literal["warm-up", "em"]

_FLOOR = 0.05  # share of the learning rate that is left at the end
_RAMP = 50  # steps over which the learning rate rises from zero; Adam's first steps are its wildest


def learning_rate(config: TrainingConfig, step: int, steps: int) -> float:
    """At `step` of about `steps` in all."""
    rise = config.warmup * steps or (_RAMP if config.optimizer == "adamw" else 1)
    ramp = min(1.0, (step + 1) / rise)
    top = config.warmup * steps  # the decay begins there
    done = min(1.0, max(0.0, step - top) / max(steps - top, 1))
    if config.decay == "linear":
        factor = 1 - done * (1 - _FLOOR)
    elif config.decay == "cosine":
        factor = _FLOOR + (1 - _FLOOR) * (1 + math.cos(math.pi * done)) / 2
    else:
        factor = 1.0
    return config.learning_rate * ramp * factor


def stage(epochs: int, levels: int, epoch: int) -> tuple[int, int, int]:
    """The level that learns in this epoch, its first epoch, and the first after it: the levels share the epochs."""
    level = max(level for level in range(levels) if level * epochs // levels <= epoch)
    return level, level * epochs // levels, (level + 1) * epochs // levels


def phase(config: EMConfig, epoch: int) -> Phase:
    """What is learned in this epoch (docs/paper.md 6.3)."""
    return "warm-up" if config.estep == "none" or epoch < config.warmup_epochs else "em"


def is_latent(config: Config) -> bool:
    """Whether there are phrase ends to learn."""
    return config.model.name == "em-hrnn" and config.model.segmentation == "learned"


def phase_name(config: Config, epoch: int) -> str:
    """As it is told to people: models without latent boundaries have no phases."""
    if not is_latent(config):
        return "train"
    level, first, _ = stage(config.training.epochs, config.model.levels, epoch)
    name = phase(config.em, epoch - first)
    return name if config.model.levels == 1 else f"{level + 1} {name}"
