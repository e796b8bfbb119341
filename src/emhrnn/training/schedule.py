"""Where training stands, and what follows from it: the learning rate, the phase of EM and the random numbers.

Randomness is keyed by (seed, purpose, step), not carried in generators, so a `Position` is all there is to save.
"""

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

import numpy as np

from emhrnn.models.settings import EMConfig
from emhrnn.training.config import Config, TrainingConfig

if TYPE_CHECKING:
    import torch

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


def phase(config: EMConfig, epoch: int) -> Phase:
    """What is learned in this epoch (docs/paper.md 6.3)."""
    return "warm-up" if config.estep == "none" or epoch < config.warmup_epochs else "em"


def is_latent(config: Config) -> bool:
    """Whether there are phrase ends to learn."""
    return config.learns_by_em and config.segmentation == "learned"


def phase_name(config: Config, epoch: int) -> str:
    """The name that people see: models without latent boundaries have no phases."""
    return phase(config.em, epoch) if is_latent(config) else "train"


class Purpose(IntEnum):
    """What a random stream is for; streams of different purposes never meet."""

    INIT = 0
    ORDER = 1  # of the documents in an epoch
    BLOCKS = 2  # E-step: centres and samples
    DROPOUT = 3
    SPLIT = 4
    NGRAMS = 5  # dropout of n-grams beside a network
    RATIONALES = 6  # dropout in documents of marked words


def numpy_generator(seed: int, purpose: Purpose, step: int = 0) -> np.random.Generator:
    """The random numbers of one purpose at one step."""
    return np.random.default_rng([seed, purpose, step])


def torch_generator(seed: int, purpose: Purpose, step: int = 0) -> "torch.Generator":
    """The same for torch."""
    import torch

    key = np.random.SeedSequence([seed, purpose, step]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(key >> np.uint64(1)))  # torch takes 63 bits


@dataclass
class Position:
    """The next step to take."""

    epoch: int = 0
    batch: int = 0  # in this epoch
    step: int = 0  # since the start


@dataclass
class Best:
    """The best epoch so far on the validation data, and how long ago it was."""

    epoch: int = -1
    value: float = -np.inf
    waited: int = 0
    loss: float = np.inf

    def update(self, epoch: int, value: float, loss: float) -> bool:
        """True when this epoch is the new best: by the metric, and of equal ones by the validation loss."""
        if (value, -loss) > (self.value, -self.loss):
            self.epoch, self.value, self.waited, self.loss = epoch, value, 0, loss
            return True
        self.waited += 1
        return False
