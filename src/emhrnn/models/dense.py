"""A fully connected layer whose first weights come from an explicit generator."""

import torch
from torch import nn


def dense(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Uniform weights within 1 / sqrt(inputs), zero bias."""
    layer = _Linear(inputs, outputs)
    bound = inputs**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer


class _Linear(nn.Linear):
    # `nn.utils.skip_init` would do the same, but loads sympy: 35 MB and half a second in every process.
    def reset_parameters(self) -> None:
        """Nothing: torch would draw from its global generator."""
