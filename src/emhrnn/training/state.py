"""Where training stands: everything that, put back, makes it go on as if it had never stopped.

Randomness is keyed by (seed, purpose, step), not carried in generators, so the counters below are its whole state.
"""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import torch


class Purpose(IntEnum):
    """What a random stream is for; streams of different purposes never meet."""

    INIT = 0
    ORDER = 1  # of the documents in an epoch
    BLOCKS = 2  # E-step: centres and samples
    DROPOUT = 3
    SPLIT = 4


def numpy_generator(seed: int, purpose: Purpose, step: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, purpose, step])


def torch_generator(seed: int, purpose: Purpose, step: int = 0) -> torch.Generator:
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
    waited: int = field(default=0)

    def update(self, epoch: int, value: float) -> bool:
        """True when this epoch is the new best."""
        if value > self.value:
            self.epoch, self.value, self.waited = epoch, value, 0
            return True
        self.waited += 1
        return False
