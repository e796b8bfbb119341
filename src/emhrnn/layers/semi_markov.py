"""Exact sums and maxima over all segmentations of sentences into phrases of at most K words, for C classes at once.

    scores[t, k - 1, y]   potential, for class y, of the phrase of k words that ends at word t; -inf forbids it
    alpha(t)              log of the sum of exp(sum of potentials) over all segmentations of the sentence up to word t
                          = logsumexp over k = 1 .. K of alpha(t - k) + scores[t, k - 1], and 0 before the first word
    q(t, k)               P(the phrase that ends at t has k words | a phrase ends at t)
    gamma(t)              P(a phrase ends at t)
    posterior(t, k)       gamma(t) q(t, k) = d alpha(T) / d scores[t, k - 1]

The forward pass goes word by word. It keeps a window of differences w_k = alpha(t - k) - alpha(t - 1):

    d = logsumexp over k of w_k + scores[t, k - 1]      q_k = exp(w_k + scores[t, k - 1] - d)
    w'_1 = 0,  w'_(k+1) = w_k - d                       log-partition = sum of all d, in double precision

Differences stay small in sentences of any length, so single precision is enough. Where no segmentation ends at a word
alpha is -inf: the window then counts from the last word whose alpha is finite, and d is 0.

d(t) = alpha(t) - alpha(t - 1) is what word t adds to the log-partition when the sentence is read from the left. From
the right it adds d(t) = beta(t - 1) - beta(t), where beta(t) is the log of the same sum over the words after t.

The backward pass starts with gamma = 1 at the last word: gamma(t - k) += gamma(t) q(t, k). It needs only q, and no exp.

Words are flat: sentence i is words sentence_offsets[i] : sentence_offsets[i + 1]. Scores of phrases that would reach
over the start of their sentence are ignored, whatever they are, and have gradient 0. An empty sentence has one
segmentation, of value 0. All functions raise an IndexError for shapes and offsets that do not match.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.native import Kernels, kernels_for
from emhrnn.layers.native.library import check_index, check_offsets
from emhrnn.layers.packing import Packing

Offsets = Int64[Tensor, " sentences_plus_1"] | Int64[np.ndarray, " sentences_plus_1"]


def log_partition(
    scores: Float[Tensor, "words K classes"], sentence_offsets: Offsets
) -> Float[Tensor, "sentences classes"]:
    """alpha at the last word of every sentence. Its gradient in scores is the posterior of every phrase. -inf, with
    gradient 0, where no segmentation is possible."""
    offsets = checked_offsets(scores, sentence_offsets)
    keep = torch.is_grad_enabled() and scores.requires_grad
    result: Tensor = _LogPartition.apply(scores.contiguous(), offsets, keep)  # type: ignore[no-untyped-call]
    return result


@torch.no_grad()
def forward_pass(
    scores: Float[Tensor, "words K classes"], sentence_offsets: Offsets
) -> tuple[Float[Tensor, "sentences classes"], Float[Tensor, "words K classes"]]:
    """Log-partitions and q, without a gradient. q is 0 where no phrase can end; elsewhere it sums to 1 over widths."""
    log_z, q = _forward(scores.contiguous(), checked_offsets(scores, sentence_offsets), keep=True)
    assert q is not None
    return log_z, q


@torch.no_grad()
def increments(
    scores: Float[Tensor, "words K classes"], sentence_offsets: Offsets, *, from_right: bool = False
) -> tuple[Float[Tensor, "sentences classes"], Float[Tensor, "words classes"]]:
    """Log-partitions, and d: what each word adds to that of its sentence, read from the left or from the right. d sums
    to the log-partition over the words of a sentence, if a segmentation is possible. Where none ends at a word, its d
    is 0, and the next word at which one does has it all."""
    offsets = checked_offsets(scores, sentence_offsets)
    if kernels := kernels_for(scores):
        return _increments_native(kernels, scores.contiguous(), offsets, from_right=from_right)
    if not from_right:
        return _increments_torch(scores, offsets)
    log_z, d = _increments_torch(*_reversed(scores, offsets))
    return log_z, _reversed(d[:, None], offsets)[0][:, 0]


@torch.no_grad()
def backward_pass(
    q: Float[Tensor, "words K classes"], sentence_offsets: Offsets, weights: Float[Tensor, "sentences classes"]
) -> Float[Tensor, "words K classes"]:
    """Posterior of every phrase, from q of `forward_pass`, times the weight of its sentence and class."""
    offsets = checked_offsets(q, sentence_offsets)
    if weights.shape != (len(offsets) - 1, q.shape[2]):
        raise IndexError(
            f"weights of shape {tuple(weights.shape)} for {len(offsets) - 1} sentences and {q.shape[2]} classes"
        )
    return _backward(q.contiguous(), offsets, weights.contiguous())


@torch.no_grad()
def best_cut(
    scores: Float[Tensor, "words K classes"],
    sentence_offsets: Offsets,
    classes: Int64[Tensor, " sentences"] | None = None,
) -> tuple[Bool[Tensor, " words *columns"], Float[Tensor, " sentences *columns"]]:
    """The segmentation with the highest sum of scores (Viterbi).

    Returns z, true at the last word of each phrase, and the sum: (words, classes) and (sentences, classes). `classes`
    names one class for each sentence; then they are (words) and (sentences), and the other classes are not looked at.
    Of two equal segmentations, the one with the shorter last phrase wins. Where none is possible the sum is -inf, and z
    is true at the last word only.
    """
    offsets = checked_offsets(scores, sentence_offsets)
    if classes is not None:
        if len(classes) != len(offsets) - 1:
            raise IndexError(f"{len(classes)} classes for {len(offsets) - 1} sentences; give one for each")
        check_index(classes, scores.shape[2])
        classes = classes.contiguous()
    if kernels := kernels_for(scores):
        return _best_native(kernels, scores.contiguous(), offsets, classes)
    return _best_torch(scores, offsets, classes)


def checked_offsets(scores: Float[Tensor, "words K classes"], sentence_offsets: Offsets) -> Int64[Tensor, " m"]:
    """The offsets as a tensor. Raises an IndexError unless they rise from 0 to the number of words, and K > 0."""
    offsets = torch.as_tensor(sentence_offsets).contiguous()
    if not len(offsets):
        raise IndexError("offsets are empty; they begin with 0, also where there is no sentence")
    check_offsets(offsets, len(scores))
    if not scores.shape[1]:
        raise IndexError("scores have no widths; phrases need at least one word, K >= 1")
    return offsets


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, offsets: Tensor, keep: bool) -> Tensor:
        log_z, q = _forward(scores, offsets, keep=keep)
        if keep:
            ctx.save_for_backward(q, offsets)
        return log_z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_log_z: Tensor) -> tuple[Tensor, None, None]:
        q, offsets = ctx.saved_tensors
        return _backward(q, offsets, d_log_z.contiguous()), None, None


def _forward(scores: Tensor, offsets: Tensor, *, keep: bool) -> tuple[Tensor, Tensor | None]:
    if kernels := kernels_for(scores):
        return _forward_native(kernels, scores, offsets, keep=keep)
    return _forward_torch(scores, offsets, keep=keep)


def _backward(q: Tensor, offsets: Tensor, weights: Tensor) -> Tensor:
    if kernels := kernels_for(q, weights):
        return _backward_native(kernels, q, offsets, weights)
    return _backward_torch(q, offsets, weights)


# ------------------------------------------------------------------ in torch: one step per word of the longest sentence


def _increments_torch(
    scores: Float[Tensor, "words K classes"], offsets: Int64[Tensor, " sentences_plus_1"]
) -> tuple[Float[Tensor, "sentences classes"], Float[Tensor, "words classes"]]:
    d = scores.new_empty(len(scores), scores.shape[2])
    return _forward_torch(scores, offsets, keep=False, increments=d)[0], d


def _reversed(
    scores: Float[Tensor, "words K classes"], offsets: Int64[Tensor, " sentences_plus_1"]
) -> tuple[Float[Tensor, "words K classes"], Int64[Tensor, " sentences_plus_1"]]:
    """Of the sentences read backwards, in which a phrase ends with its first word."""
    lengths = offsets.diff()
    begin, words = (torch.repeat_interleave(x, lengths) for x in (offsets[:-1], lengths))
    t = torch.arange(len(scores)) - begin  # of the reversed sentence
    k = torch.arange(scores.shape[1])
    ends = (begin + words - 1 - t)[:, None] + torch.minimum(k, t[:, None])  # (words, K)
    return scores[ends, k], offsets


def _forward_torch(
    scores: Float[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    *,
    keep: bool,
    increments: Float[Tensor, "words classes"] | None = None,
) -> tuple[Float[Tensor, "sentences classes"], Float[Tensor, "words K classes"] | None]:
    """Also writes d, where there is room for it."""
    packing = Packing(offsets, reverse=False)
    packed = scores[packing.order]  # (words, K, classes), word by word of all sentences
    q = torch.zeros_like(packed) if keep else None
    window = _Window(packing, packed)
    total = window.alpha.new_zeros(window.alpha.shape, dtype=torch.float64)  # (sentences, classes)
    for rows, x in window:
        highest = x.amax(dim=1)  # (running, classes)
        reference = torch.where(highest == -torch.inf, 0, highest)
        e = torch.exp(x - reference[:, None])  # (running, widths, classes)
        mass = e.sum(dim=1)  # (running, classes)
        alive = mass != 0
        d = torch.where(alive, reference + mass.log(), 0)
        total[: len(d)] += d
        if increments is not None:
            increments[packing.order[rows]] = d
        if q is not None:
            q[rows, : x.shape[1]] = e / torch.where(alive, mass, 1)[:, None]
        window.shift(d, alive)
    log_z = torch.empty_like(window.alpha)
    log_z[packing.sequences] = (total + window.alpha).to(scores.dtype)
    return log_z, None if q is None else q[packing.inverse]


def _backward_torch(
    q: Float[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    weights: Float[Tensor, "sentences classes"],
) -> Float[Tensor, "words K classes"]:
    packing = Packing(offsets, reverse=False)
    posterior = q[packing.order].double()  # (words, K, classes), word by word of all sentences
    gamma = posterior.new_zeros(len(q), q.shape[2])
    sentences = packing.lengths > 0
    gamma[packing.inverse[offsets[1:][sentences] - 1]] = weights[sentences].double()
    starts = _starts(packing)
    for t in reversed(range(len(starts) - 1)):
        rows = slice(starts[t], starts[t + 1])
        mass = posterior[rows].sum(dim=1)  # (running, classes); 1 but for roundings, or 0
        posterior[rows] *= torch.where(mass == 0, 0, gamma[rows] / mass)[:, None]
        for k in range(1, min(q.shape[1], t) + 1):
            gamma[starts[t - k] : starts[t - k] + len(mass)] += posterior[rows, k - 1]
    return posterior[packing.inverse].to(q.dtype)


def _best_torch(
    scores: Float[Tensor, "words K classes"],
    offsets: Int64[Tensor, " sentences_plus_1"],
    classes: Int64[Tensor, " sentences"] | None,
) -> tuple[Bool[Tensor, " words *columns"], Float[Tensor, " sentences *columns"]]:
    packing = Packing(offsets, reverse=False)
    sentence = torch.repeat_interleave(packing.lengths)  # (words)
    if classes is not None:
        column = classes[sentence][:, None, None].expand(-1, scores.shape[1], 1)  # (words, K, 1)
        z, value = _best_torch(scores.gather(2, column), offsets, None)
        return z.squeeze(1), value.squeeze(1)
    packed = scores[packing.order]  # (words, K, classes), word by word of all sentences
    window = _Window(packing, packed)
    width = torch.zeros(len(packed), packed.shape[2], dtype=torch.int64)  # less 1, of the last phrase if it ends here
    for rows, x in window:
        highest, width[rows] = x.max(dim=1)  # (running, classes)
        alive = highest != -torch.inf
        window.shift(torch.where(alive, highest, 0), alive)
    possible = torch.empty_like(window.alpha, dtype=torch.bool)
    possible[packing.sequences] = window.alpha != -torch.inf  # (sentences, classes)
    final = packing.inverse[offsets[1:][packing.lengths > 0] - 1]  # packed rows of last words
    z = torch.zeros_like(width, dtype=torch.bool)  # packed: (words, classes)
    z[final] = possible[packing.lengths > 0]
    starts = _starts(packing)
    for t in reversed(range(len(starts) - 1)):
        rows = slice(starts[t], starts[t + 1])
        for k in range(1, min(packed.shape[1], t) + 1):
            z[starts[t - k] : starts[t - k] + rows.stop - rows.start] |= z[rows] & (width[rows] == k - 1)
    chosen = torch.where(z, packed.gather(1, width[:, None]).squeeze(1), 0)  # (words, classes)
    values = torch.where(possible, 0.0, -torch.inf).double()  # (sentences, classes)
    values.index_add_(0, sentence, chosen[packing.inverse].double())
    z[final] = True
    return z[packing.inverse], values.to(scores.dtype)


class _Window:
    """Goes through packed scores word by word and keeps the last K alphas of every sentence, less its last finite one:
    yields the rows of a word, and alpha before the last phrase + its score, for every width that fits in."""

    def __init__(self, packing: Packing, packed: Float[Tensor, "words K classes"]) -> None:
        self._packed, self._starts = packed, _starts(packing)
        self._rows = packed.new_zeros(len(packing.offsets) - 1, *packed.shape[1:])  # (sentences, K, classes)

    @property
    def alpha(self) -> Float[Tensor, "sentences classes"]:
        """Of the last word, less the last finite one: 0, or -inf where no segmentation ends there; longest first."""
        return self._rows[:, 0]

    def __iter__(self) -> Any:
        for t, (start, stop) in enumerate(zip(self._starts[:-1], self._starts[1:], strict=True)):
            widths = min(self._rows.shape[1], t + 1)
            yield slice(start, stop), self._rows[: stop - start, :widths] + self._packed[start:stop, :widths]

    def shift(self, d: Float[Tensor, "running classes"], alive: Bool[Tensor, "running classes"]) -> None:
        """To the next word: alpha of this one is d above the reference, or -inf where it is not alive."""
        rows = self._rows[: len(d)]
        rows[:, 1:] = rows[:, :-1] - d[:, None]  # the right side is a new tensor
        rows[:, 0] = torch.where(alive, 0.0, -torch.inf)


def _starts(packing: Packing) -> list[int]:
    """First packed row of every word of the longest sentence, and their end."""
    return [0, *packing.batch_sizes.cumsum(0).tolist()]


# ------------------------------------------------------------------ on the native kernels


def _forward_native(
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


def _increments_native(
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


def _backward_native(
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


def _best_native(
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
