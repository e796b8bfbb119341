"""Averaged weights: what training validates and keeps is a moving average of the weights, not the last step's.

    average += (weights - average) / min(n, window)        at every EVERY-th step; n counts these updates

The steps themselves go on from the weights as they are. The average smooths out what single batches do to them, most of
all where one number acts on every document, such as the strength of the evidence.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

EVERY = 10  # steps between updates: an update costs a pass over all weights, a step only over those of its batch


class WeightAverage:
    """A moving average of the parameters of `model` over about `epochs` epochs; 0 epochs: the parameters themselves."""

    def __init__(self, model: nn.Module, epochs: float) -> None:
        self.parameters, self.epochs = dict(model.named_parameters()), epochs
        self.values: dict[str, Tensor] = {}  # by parameter name, from the first update on
        self.updates = 0

    @torch.no_grad()
    def update(self, step: int, steps_per_epoch: int) -> None:
        """After step number `step` (from 0)."""
        if not self.epochs or step % EVERY:
            return
        self.updates += 1
        window = max(self.epochs * steps_per_epoch / EVERY, 1.0)
        for name, parameter in self.parameters.items():
            if name in self.values:
                self.values[name].lerp_(parameter, 1 / min(self.updates, window))
            else:
                self.values[name] = parameter.detach().clone()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """In the block, the model has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, value in self.values.items():
            parameter = self.parameters[name]
            held = parameter.clone()
            parameter.copy_(value)
            value.copy_(held)

    def state_dict(self) -> dict[str, Tensor]:
        """The average, for a checkpoint; empty where there is none."""
        return {**self.values, "updates": torch.tensor(self.updates)} if self.values else {}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Put back what `state_dict` gave."""
        self.values = {name: value.clone() for name, value in state.items() if name != "updates"}
        self.updates = int(state["updates"]) if state else 0
