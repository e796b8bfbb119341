"""The hard boundary detector of HM-RNN and MHS-RNN (SPEC 3).

    pi = hardsigm(x) = max(0, min(1, (slope x + 1) / 2))        z = 1[pi > 0.5], which is 1[x > 0]

Backward, the step is taken for the identity (straight-through): dz/dx = slope / 2 while 0 < pi < 1, else 0. The slope
grows with the epochs, so that pi comes ever closer to z and the gradient to the truth.
"""

from jaxtyping import Float
from torch import Tensor

FIRST_SLOPE, LAST_SLOPE, PER_EPOCH = 1.0, 5.0, 0.04


def annealed_slope(epoch: int) -> float:
    """1 at first, 5 after a hundred epochs."""
    return min(LAST_SLOPE, FIRST_SLOPE + PER_EPOCH * epoch)


def hard_sigmoid(x: Float[Tensor, "*shape"], slope: Float[Tensor, ""]) -> Float[Tensor, "*shape"]:
    return ((slope * x + 1) / 2).clamp(0, 1)
