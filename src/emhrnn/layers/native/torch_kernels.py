"""When the native kernels serve for torch tensors, and what must be checked before they do."""

import torch
from torch import Tensor

from emhrnn.layers import native
from emhrnn.layers.native.library import Kernels, check_index, check_offsets
from emhrnn.shapes import Float

__all__ = ["TorchKernels", "check_columns", "check_gates", "check_index", "check_offsets", "kernels_for"]

TorchKernels = Kernels  # tensors are used where they are, even if they require a gradient


def kernels_for(*tensors: Tensor) -> Kernels | None:
    """The kernels, if they can work on these tensors: float32 on the CPU."""
    if all(tensor.dtype is torch.float32 and tensor.device.type == "cpu" for tensor in tensors):
        return native.kernels()
    return None


def check_columns(x: Float[Tensor, "n D"], weight: Float[Tensor, "columns k"]) -> None:
    """Raises an IndexError unless the rows of x have as many numbers as those of the weight."""
    if x.shape[1] != weight.shape[1]:
        raise IndexError(f"rows of {x.shape[1]} numbers for weights of {weight.shape[1]}")


def check_gates(projection: Float[Tensor, "n gates"], state_weight: Float[Tensor, "rows k"]) -> None:
    """Raises an IndexError unless the projections are to the gates of this state weight."""
    if projection.shape[1] != len(state_weight):
        raise IndexError(f"projections to {projection.shape[1]} gates for a state of {len(state_weight)}")
