"""The native kernels on torch tensors: recurrent layers, their gradients, linear layers."""

from functools import cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers import native
from emhrnn.layers.native.library import CELLS, CellName, Kernels
from emhrnn.layers.native.library import check_index as check_numbers
from emhrnn.layers.native.library import check_offsets as check_rising
from emhrnn.layers.packing import Packing


def kernels_for(*tensors: Tensor) -> "TorchKernels | None":
    """The kernels, if they can work on these tensors: float32 on the CPU."""
    if all(tensor.dtype is torch.float32 and tensor.device.type == "cpu" for tensor in tensors):
        found = native.kernels()
        return None if found is None else _on_tensors(found)
    return None


@cache
def _on_tensors(kernels: Kernels) -> "TorchKernels":
    return TorchKernels(kernels.library)


class RecurrentGradients(NamedTuple):
    """Of four blocks of gates, as in layers/cells.py. What was not asked for is None."""

    input_weight: Float[Tensor, "four_H D"] | None
    state_weight: Float[Tensor, "four_H H"] | None
    bias: Float[Tensor, " four_H"] | None
    projection: Float[Tensor, "k four_H"] | None
    x: Float[Tensor, "n D"] | None


class TorchKernels(Kernels):
    """All tensors are float32 or int64 on the CPU. They are used where they are, even if they require a gradient."""

    def recurrent_forward(
        self,
        cell: CellName,
        packing: Packing,
        x: Float[Tensor, "m D"] | None,
        projection: Float[Tensor, "m gates"] | None,
        rows: Int64[Tensor, " n"] | None,
        input_weight: Float[Tensor, "gates D"] | None,
        state_weight: Float[Tensor, "gates H"],
        bias: Float[Tensor, " gates"] | None,
        *,
        keep: bool,
    ) -> tuple[Float[Tensor, "n H"], Float[Tensor, "n four_H"] | None, Float[Tensor, "n H"] | None]:
        """h, and with `keep` what the backward pass needs: the gates, and c of an LSTM. The input is x, or else a
        projection."""
        n, H = packing.rows, state_weight.shape[1]
        source = x if x is not None else projection
        assert source is not None
        if rows is None and len(source) != n:
            raise IndexError(f"{len(source)} input rows for offsets that end at {n}")
        if x is not None and input_weight is not None:
            check_columns(x, input_weight)
        if projection is not None:
            check_gates(projection, state_weight)
        if rows is not None:
            check_index(rows, len(source))
            if len(rows) != n:
                raise IndexError(f"{len(rows)} row numbers for offsets that end at {n}")
        h = state_weight.new_empty(n, H)
        gates = state_weight.new_empty(n, 4 * H) if keep else None
        c = state_weight.new_empty(n, H) if keep and cell == "lstm" else None
        self.call(
            "recurrent_forward", CELLS[cell], *sequences(packing), H, source.shape[1], x, projection, rows,
            input_weight, state_weight, bias, gates, c, h, torch.get_num_threads(),
        )  # fmt: skip
        return h, gates, c

    def recurrent_backward(
        self,
        cell: CellName,
        packing: Packing,
        x: Float[Tensor, "n D"] | None,
        input_weight: Float[Tensor, "gates D"] | None,
        state_weight: Float[Tensor, "gates H"],
        gates: Float[Tensor, "n four_H"],
        c: Float[Tensor, "n H"] | None,
        h: Float[Tensor, "n H"],
        dh: Float[Tensor, "n H"],
        *,
        projection_rows: Int64[Tensor, " k"] | None,
        need_x: bool,
        need_weights: bool,
    ) -> RecurrentGradients:
        """The gradient of the projection is given for the rows that are named."""
        n, H, D = len(h), state_weight.shape[1], 0 if x is None else x.shape[1]
        d_weights = h.new_empty(4 * H, self.padded_columns(D + H + 1)) if need_weights else None
        d_projection = places = None
        if projection_rows is not None:
            check_index(projection_rows, n)
            d_projection = h.new_empty(len(projection_rows), 4 * H)
            places = torch.full((n,), -1).index_copy_(0, projection_rows, torch.arange(len(projection_rows)))
        dx = h.new_empty(n, D) if need_x else None
        self.call(
            "recurrent_backward", CELLS[cell], *sequences(packing), H, D, x, input_weight, state_weight, gates, c, h,
            dh, d_weights, d_projection, places, dx, torch.get_num_threads(),
        )  # fmt: skip
        if d_weights is None:
            return RecurrentGradients(None, None, None, d_projection, dx)
        of_x, of_h, of_bias = d_weights[:, :D], d_weights[:, D : D + H], d_weights[:, D + H]
        return RecurrentGradients(of_x.contiguous(), of_h.contiguous(), of_bias.contiguous(), d_projection, dx)

    def linear(
        self, x: Float[Tensor, "n D"], weight: Float[Tensor, "columns D"], bias: Float[Tensor, " columns"] | None
    ) -> Float[Tensor, "n columns"]:
        check_columns(x, weight)
        y = x.new_empty(len(x), len(weight))
        self.call("linear", *x.shape, len(weight), x, weight, bias, y, torch.get_num_threads())
        return y

    def address(self, name: str, argument: Any) -> int:
        if not isinstance(argument, Tensor):
            return super().address(name, argument)
        if not argument.is_contiguous():
            raise ValueError(f"{name} needs contiguous tensors")
        return argument.data_ptr()


def check_index(index: Int64[Tensor, " k"], size: int) -> None:
    """Raises an IndexError unless all are row numbers of a tensor with `size` rows."""
    check_numbers(index.numpy(), size)


def check_columns(x: Float[Tensor, "n D"], weight: Float[Tensor, "columns k"]) -> None:
    """Raises an IndexError unless the rows of x have as many numbers as those of the weight."""
    if x.shape[1] != weight.shape[1]:
        raise IndexError(f"rows of {x.shape[1]} numbers for weights of {weight.shape[1]}")


def check_gates(projection: Float[Tensor, "n gates"], state_weight: Float[Tensor, "rows k"]) -> None:
    """Raises an IndexError unless the projections are to the gates of this state weight."""
    if projection.shape[1] != len(state_weight):
        raise IndexError(f"projections to {projection.shape[1]} gates for a state of {len(state_weight)}")


def check_offsets(offsets: Int64[Tensor, " m_plus_1"], rows: int) -> None:
    """Raises an IndexError unless offsets rise from 0 to the number of rows."""
    check_rising(offsets.numpy(), rows)


def sequences(packing: Packing) -> tuple[int, Tensor, Tensor, int]:
    """Sequences, as the kernels take them: their number, offsets, order and direction."""
    return len(packing.offsets) - 1, packing.offsets, packing.sequences, int(packing.reverse)
