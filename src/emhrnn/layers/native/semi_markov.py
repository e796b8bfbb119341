"""Sums and maxima over segmentations on the native kernels. layers/semi_markov.py checks the arguments."""

import torch
from jaxtyping import Bool, Float32, Int64
from torch import Tensor

from emhrnn.layers.native.library import Kernels


def forward(
    kernels: Kernels,
    scores: Float32[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    *,
    keep: bool,
) -> tuple[Float32[Tensor, "sentences classes"], Float32[Tensor, "words K classes"] | None]:
    """Log-partitions, and with `keep` q."""
    _, K, C = scores.shape
    q = torch.empty_like(scores) if keep else None
    log_partition = scores.new_empty(len(offsets) - 1, C)
    kernels.call(
        "semi_markov_forward", len(offsets) - 1, offsets, K, C, scores, q, log_partition, torch.get_num_threads()
    )
    return log_partition, q


def increments(
    kernels: Kernels,
    scores: Float32[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    *,
    from_right: bool,
) -> tuple[Float32[Tensor, "sentences classes"], Float32[Tensor, "words classes"]]:
    """Log-partitions, and d of every word."""
    n, K, C = scores.shape
    d, log_partition = scores.new_empty(n, C), scores.new_empty(len(offsets) - 1, C)
    kernels.call(
        "semi_markov_increments", len(offsets) - 1, offsets, K, C, int(from_right), scores, d, log_partition,
        torch.get_num_threads(),
    )  # fmt: skip
    return log_partition, d


def backward(
    kernels: Kernels,
    q: Float32[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    weights: Float32[Tensor, "sentences classes"],
) -> Float32[Tensor, "words K classes"]:
    """Posterior of every phrase, times the weight of its sentence and class."""
    _, K, C = q.shape
    posterior = torch.empty_like(q)
    kernels.call(
        "semi_markov_backward", len(offsets) - 1, offsets, K, C, q, weights, posterior, torch.get_num_threads()
    )
    return posterior


def best(
    kernels: Kernels,
    scores: Float32[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    classes: Int64[Tensor, " sentences"] | None,
) -> tuple[Bool[Tensor, " words *columns"], Float32[Tensor, " sentences *columns"]]:
    """Ends and value of the best segmentation, of every class or of one named class of each sentence."""
    n, K, C = scores.shape
    columns = () if classes is not None else (C,)
    z = torch.zeros(n, *columns, dtype=torch.bool)
    value = scores.new_empty(len(offsets) - 1, *columns)
    kernels.call(
        "semi_markov_best", len(offsets) - 1, offsets, K, C, scores, classes, z, value, torch.get_num_threads()
    )
    return z, value
