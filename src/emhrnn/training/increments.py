"""Training by portions, as `partial_fit` of the estimator does."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from emhrnn.corpus import Corpus
from emhrnn.training.loop import make_objective, steps
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.run import Run
from emhrnn.training.schedule import Position
from emhrnn.training.train import check_label_settings

MOST_KNOWN = 200  # documents before a portion that count beside it


@dataclass
class Increments:
    """Training by portions, as `partial_fit` does: a run and its optimiser. Each portion is one pass over its texts.

    Portions count as epochs in the schedule of EM. The learning rate does not decay, because the number of portions is
    unknown. Running values, such as the threshold of phrase ends, move by the portion's share of all documents, so
    that a few texts do not undo what many have shown."""

    run: Run
    position: Position = field(default_factory=Position)
    known: int = 0  # documents before; capped at MOST_KNOWN, so that old ones lose influence

    @cached_property
    def optimizer(self) -> Optimizer:
        """Made at the first portion: before it, some models have no parameters for their phrases."""
        return Optimizer(self.run.model, self.run.config.training, indicator_pace=self.run.config.em.pace)

    def add(self, portion: Corpus) -> None:
        """One pass over some documents, which must be in the run's own words and classes."""
        config = self.run.config
        check_label_settings(self.run, portion)
        self.run.uncalibrate()  # they were fitted to the weights before
        objective = make_objective(self.run.model, config, portion, known=self.known)
        once = config.training.model_copy(update={"epochs": self.position.epoch + 1, "decay": "none"})
        for _ in steps(objective, self.optimizer, portion, once, self.position):
            pass
        objective.end_epoch()
        self.known = min(self.known + len(portion), MOST_KNOWN)

    def state(self) -> dict[str, Any]:
        """Plain values and arrays, without the run."""
        tensors = {name: tensor.numpy().copy() for name, tensor in self.optimizer.state_dict().items()}
        return {"position": vars(self.position).copy(), "known": self.known, "optimizer": tensors}

    @classmethod
    def restored(cls, run: Run, state: dict[str, Any]) -> "Increments":
        increments = cls(run, Position(**state["position"]), state["known"])
        arrays: dict[str, np.ndarray] = state["optimizer"]
        increments.optimizer.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
        return increments
