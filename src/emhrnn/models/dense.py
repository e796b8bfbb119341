"""A fully connected layer whose first weights come from an explicit generator."""

import torch
from torch import nn


def dense(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Uniform weights within 1 / sqrt(inputs), zero bias."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, inputs, outputs)  # type: ignore[no-untyped-call]
    bound = inputs**-0.5
    with torch.no_grad():
        layer.weight.uniform_(-bound, bound, generator=generator)
        layer.bias.zero_()
    return layer
