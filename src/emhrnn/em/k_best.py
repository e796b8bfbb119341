"""The n best segmentations of every sentence, exactly: Viterbi with lists of n values in the place of one.

    values(t) = the n highest of { values(t - k)[rank] + scores[t, k - 1] : k = 1 .. K, rank = 1 .. n }

Each pair (k, rank) is another segmentation, so all n are different. Sums are in double precision.
"""

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from emhrnn.layers.packing import Packing


@torch.no_grad()
def k_best_cuts(
    scores: Float[Tensor, "words K classes"], offsets: Int64[Tensor, " sentences_plus_1"], n: int
) -> tuple[Bool[Tensor, "n words classes"], Float64[Tensor, "n sentences classes"]]:
    """z, true at the last word of each phrase, best first, and sums of scores. Where a sentence has fewer than n
    segmentations, the sum is -inf, and z is true at its last word only. One step per word of the longest sentence."""
    values, before = _lists(scores, offsets, n)
    return _traced(values, before, offsets), values


def _lists(
    scores: Float[Tensor, "words K classes"], offsets: Int64[Tensor, " sentences_plus_1"], n: int
) -> tuple[Float64[Tensor, "n sentences classes"], Int64[Tensor, "n words classes"]]:
    """The highest sums, and for every word and rank what comes before it: (k - 1) n + the rank there."""
    packing = Packing(offsets, reverse=False)
    packed = scores[packing.order].double()  # (words, K, classes), word by word of all sentences
    words, K, C = packed.shape
    before = torch.zeros(words, n, C, dtype=torch.int64)
    window = packed.new_full((len(offsets) - 1, K, n, C), -torch.inf)  # of words t - 1, t - 2, ...; longest first
    window[:, 0, 0] = 0  # one segmentation of no words
    start = 0
    for t, size in enumerate(packing.batch_sizes.tolist()):
        rows, widths = slice(start, start + size), min(K, t + 1)
        sums = window[:size, :widths] + packed[rows, :widths, None]  # (running, widths, n, classes)
        highest, before[rows] = sums.flatten(1, 2).topk(n, dim=1)  # (running, n, classes)
        window[:size, 1:] = window[:size, :-1].clone()
        window[:size, 0] = highest
        start += size
    values = torch.empty(n, len(offsets) - 1, C, dtype=torch.float64)
    values[:, packing.sequences] = window[:, 0].transpose(0, 1)
    return values, before[packing.inverse].transpose(0, 1)


def _traced(
    values: Float64[Tensor, "n sentences classes"],
    before: Int64[Tensor, "n words classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
) -> Bool[Tensor, "n words classes"]:
    """Follows what comes before from the last words, all sentences and ranks side by side, a phrase at a time."""
    n = len(values)
    z = torch.zeros_like(before, dtype=torch.bool)
    z[:, offsets[1:][offsets.diff() > 0] - 1] = True
    number, sentence, y = torch.nonzero((values > -torch.inf) & (offsets.diff() > 0)[:, None], as_tuple=True)
    rank, t, first = number, offsets[1:][sentence] - 1, offsets[sentence]  # one entry for each segmentation
    while len(t):
        z[number, t, y] = True
        code = before[rank, t, y]
        t, rank = t - code // n - 1, code % n
        left = t >= first
        number, y, rank, t, first = (entries[left] for entries in (number, y, rank, t, first))
    return z
