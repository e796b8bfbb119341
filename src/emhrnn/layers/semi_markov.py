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
over the start of their sentence are ignored, whatever they are, and have posterior 0. An empty sentence has one
segmentation, of value 0. All functions raise an IndexError for shapes and offsets that do not match.
"""

from collections.abc import Iterator

import numpy as np

from emhrnn.cores import threads
from emhrnn.layers.native import Kernels, kernels
from emhrnn.layers.native.library import check_index, check_offsets, check_shape
from emhrnn.layers.order import Order
from emhrnn.shapes import Bool, Float, Float32, Int64

Scores = Float[np.ndarray, "words K classes"]
Sums = Float[np.ndarray, "sentences classes"]
Offsets = Int64[np.ndarray, " sentences_plus_1"]


def forward_pass(scores: Scores, sentence_offsets: Offsets, *, keep: bool = True) -> tuple[Sums, Scores | None]:
    """Log-partitions, -inf where no segmentation is possible, and with `keep` q: it is 0 where no phrase can end, and
    elsewhere it sums to 1 over widths."""
    scores, offsets = _checked(scores, sentence_offsets)
    if native := _native_for(scores):
        return _forward_native(native, scores, offsets, keep=keep)
    return _forward_plain(scores, offsets, keep=keep)


def backward_pass(q: Scores, sentence_offsets: Offsets, weights: Sums) -> Scores:
    """Posterior of every phrase, from q of `forward_pass`, times the weight of its sentence and class."""
    q, offsets = _checked(q, sentence_offsets)
    check_shape("weights", weights, (len(offsets) - 1, q.shape[2]))
    weights = np.ascontiguousarray(weights, dtype=q.dtype)
    if native := _native_for(q):
        return _backward_native(native, q, offsets, weights)
    return _backward_plain(q, offsets, weights)


def increments(
    scores: Scores, sentence_offsets: Offsets, *, from_right: bool = False
) -> tuple[Sums, Float[np.ndarray, "words classes"]]:
    """Log-partitions, and d: what each word adds to that of its sentence, read from the left or from the right. d sums
    to the log-partition over the words of a sentence, if a segmentation is possible. Where none ends at a word, its d
    is 0, and the next word at which one does has it all."""
    scores, offsets = _checked(scores, sentence_offsets)
    if native := _native_for(scores):
        return _increments_native(native, scores, offsets, from_right=from_right)
    if not from_right:
        return _increments_plain(scores, offsets)
    log_z, d = _increments_plain(_reversed(scores, offsets), offsets)
    return log_z, _reversed(d[:, None], offsets)[:, 0]


def best_cut(
    scores: Scores,
    sentence_offsets: Offsets,
    classes: Int64[np.ndarray, " sentences"] | None = None,
    *,
    ends: Float[np.ndarray, " words"] | None = None,
) -> tuple[Bool[np.ndarray, " words *columns"], Float[np.ndarray, " sentences *columns"]]:
    """The segmentation with the highest sum of scores (Viterbi).

    Returns z, true at the last word of each phrase, and the sum: (words, classes) and (sentences, classes). `classes`
    names one class for each sentence; then they are (words) and (sentences), and the other classes are not looked at.
    `ends` is added for each phrase that ends at the word, whatever its width. Of two equal segmentations, the one with
    the shorter last phrase wins. Where none is possible the sum is -inf, and z is true at the last word only.
    """
    scores, offsets = _checked(scores, sentence_offsets)
    if classes is not None:
        if len(classes) != len(offsets) - 1:
            raise IndexError(f"{len(classes)} classes for {len(offsets) - 1} sentences; give one for each")
        check_index(classes, scores.shape[2])
        classes = np.ascontiguousarray(classes)
    if ends is not None:
        check_shape("ends", ends, (len(scores),))
        ends = np.ascontiguousarray(ends, dtype=scores.dtype)
    if native := _native_for(scores):
        return _best_native(native, scores, offsets, classes, ends)
    return _best_plain(scores if ends is None else scores + ends[:, None, None], offsets, classes)


def _checked(scores: Scores, sentence_offsets: Offsets) -> tuple[Scores, Offsets]:
    """Both in one piece. Raises an IndexError unless offsets rise from 0 to the number of words, and K > 0."""
    check_offsets(sentence_offsets, len(scores))
    if not scores.shape[1]:
        raise IndexError("scores have no widths; phrases need at least one word, K >= 1")
    return np.ascontiguousarray(scores), np.ascontiguousarray(sentence_offsets)


def _native_for(scores: Scores) -> Kernels | None:
    return kernels() if scores.dtype == np.float32 else None


# ------------------------------------------------------------------ in NumPy: one step per word of the longest sentence


def _increments_plain(scores: Scores, offsets: Offsets) -> tuple[Sums, Float[np.ndarray, "words classes"]]:
    d = np.empty((len(scores), scores.shape[2]), dtype=scores.dtype)
    return _forward_plain(scores, offsets, keep=False, increments=d)[0], d


def _reversed(scores: Scores, offsets: Offsets) -> Scores:
    """Of the sentences read backwards, in which a phrase ends with its first word."""
    lengths = np.diff(offsets)
    begin, words = np.repeat(offsets[:-1], lengths), np.repeat(lengths, lengths)
    t = np.arange(len(scores)) - begin  # of the reversed sentence
    k = np.arange(scores.shape[1])
    ends = (begin + words - 1 - t)[:, None] + np.minimum(k, t[:, None])  # (words, K)
    result: np.ndarray = scores[ends, k]
    return result


def _forward_plain(
    scores: Scores, offsets: Offsets, *, keep: bool, increments: Float[np.ndarray, "words classes"] | None = None
) -> tuple[Sums, Scores | None]:
    """Also writes d, where there is room for it."""
    order = Order(offsets)
    packed = scores[order.rows]  # (words, K, classes), word by word of all sentences
    q = np.zeros_like(packed) if keep else None
    window = _Window(order, packed)
    total = np.zeros(window.alpha.shape)  # (sentences, classes)
    for rows, x in window:
        highest = x.max(axis=1)  # (running, classes)
        reference = np.where(highest == -np.inf, 0, highest).astype(scores.dtype)
        e = np.exp(x - reference[:, None])  # (running, widths, classes)
        mass = e.sum(axis=1)  # (running, classes)
        alive = mass != 0
        d = np.where(alive, reference + np.log(np.where(alive, mass, 1)), 0).astype(scores.dtype)
        total[: len(d)] += d
        if increments is not None:
            increments[order.rows[rows]] = d
        if q is not None:
            q[rows, : x.shape[1]] = e / np.where(alive, mass, 1)[:, None]
        window.shift(d, alive)
    log_z = np.empty_like(window.alpha)
    log_z[order.sequences] = total + window.alpha
    return log_z, None if q is None else q[order.inverse]


def _backward_plain(q: Scores, offsets: Offsets, weights: Sums) -> Scores:
    order = Order(offsets)
    posterior = q[order.rows].astype(np.float64)  # (words, K, classes), word by word of all sentences
    gamma = np.zeros((len(q), q.shape[2]))
    sentences = order.lengths > 0
    gamma[order.inverse[offsets[1:][sentences] - 1]] = weights[sentences]
    starts = order.starts
    for t in reversed(range(len(starts) - 1)):
        rows = slice(starts[t], starts[t + 1])
        mass = posterior[rows].sum(axis=1)  # (running, classes); 1 but for roundings, or 0
        posterior[rows] *= np.where(mass == 0, 0, gamma[rows] / np.where(mass == 0, 1, mass))[:, None]
        for k in range(1, min(q.shape[1], t) + 1):
            gamma[starts[t - k] : starts[t - k] + len(mass)] += posterior[rows, k - 1]
    result: np.ndarray = posterior[order.inverse].astype(q.dtype)
    return result


def _best_plain(
    scores: Scores, offsets: Offsets, classes: Int64[np.ndarray, " sentences"] | None
) -> tuple[Bool[np.ndarray, " words *columns"], Float[np.ndarray, " sentences *columns"]]:
    order = Order(offsets)
    sentence = np.repeat(np.arange(len(order.lengths)), order.lengths)  # (words)
    if classes is not None:
        own = np.take_along_axis(scores, classes[sentence][:, None, None], axis=2)  # (words, K, 1)
        z, value = _best_plain(own, offsets, None)
        return z[:, 0], value[:, 0]
    packed = scores[order.rows]  # (words, K, classes), word by word of all sentences
    window = _Window(order, packed)
    width = np.zeros((len(packed), packed.shape[2]), dtype=np.int64)  # less 1, of the last phrase if it ends here
    for rows, x in window:
        width[rows] = x.argmax(axis=1)  # (running, classes)
        highest = x.max(axis=1)
        alive = highest != -np.inf
        window.shift(np.where(alive, highest, 0).astype(scores.dtype), alive)
    possible = np.empty(window.alpha.shape, dtype=bool)
    possible[order.sequences] = window.alpha != -np.inf  # (sentences, classes)
    final = order.inverse[offsets[1:][order.lengths > 0] - 1]  # packed rows of last words
    z = np.zeros(width.shape, dtype=bool)  # packed: (words, classes)
    z[final] = possible[order.lengths > 0]
    starts = order.starts
    for t in reversed(range(len(starts) - 1)):
        rows = slice(starts[t], starts[t + 1])
        for k in range(1, min(packed.shape[1], t) + 1):
            z[starts[t - k] : starts[t - k] + rows.stop - rows.start] |= z[rows] & (width[rows] == k - 1)
    own = np.take_along_axis(packed, width[:, None], axis=1)[:, 0]
    chosen = np.where(z, own, 0)  # (words, classes)
    values = np.where(possible, 0.0, -np.inf)  # (sentences, classes)
    np.add.at(values, sentence, chosen[order.inverse])
    z[final] = True
    return z[order.inverse], values.astype(scores.dtype)


class _Window:
    """Goes through packed scores word by word and keeps the last K alphas of every sentence, less its last finite one:
    yields the rows of a word, and alpha before the last phrase + its score, for every width that fits in."""

    def __init__(self, order: Order, packed: Scores) -> None:
        self._packed, self._starts = packed, order.starts
        self._rows = np.zeros((len(order.lengths), *packed.shape[1:]), dtype=packed.dtype)  # (sentences, K, classes)

    @property
    def alpha(self) -> Sums:
        """Of the last word, less the last finite one: 0, or -inf where no segmentation ends there; longest first."""
        alpha: np.ndarray = self._rows[:, 0]
        return alpha

    def __iter__(self) -> Iterator[tuple[slice, Float[np.ndarray, "running widths classes"]]]:
        for t, (start, stop) in enumerate(zip(self._starts[:-1], self._starts[1:], strict=True)):
            widths = min(self._rows.shape[1], t + 1)
            yield slice(start, stop), self._rows[: stop - start, :widths] + self._packed[start:stop, :widths]

    def shift(self, d: Float[np.ndarray, "running classes"], alive: Bool[np.ndarray, "running classes"]) -> None:
        """To the next word: alpha of this one is d above the reference, or -inf where it is not alive."""
        rows = self._rows[: len(d)]
        rows[:, 1:] = rows[:, :-1] - d[:, None]  # the right side is a new array
        rows[:, 0] = np.where(alive, 0.0, -np.inf)


# ------------------------------------------------------------------ on the native kernels


def _forward_native(
    native: Kernels, scores: Scores, offsets: Offsets, *, keep: bool
) -> tuple[Float32[np.ndarray, "sentences classes"], Float32[np.ndarray, "words K classes"] | None]:
    """Log-partitions, and with `keep` q."""
    _, K, C = scores.shape
    q = np.empty_like(scores) if keep else None
    log_partition = np.empty((len(offsets) - 1, C), dtype=np.float32)
    native.call("semi_markov_forward", len(offsets) - 1, offsets, K, C, scores, q, log_partition, threads())
    return log_partition, q


def _increments_native(
    native: Kernels, scores: Scores, offsets: Offsets, *, from_right: bool
) -> tuple[Float32[np.ndarray, "sentences classes"], Float32[np.ndarray, "words classes"]]:
    """Log-partitions, and d of every word."""
    n, K, C = scores.shape
    d, log_partition = (np.empty((rows, C), dtype=np.float32) for rows in (n, len(offsets) - 1))
    native.call(
        "semi_markov_increments", len(offsets) - 1, offsets, K, C, int(from_right), scores, d, log_partition, threads()
    )
    return log_partition, d


def _backward_native(
    native: Kernels, q: Scores, offsets: Offsets, weights: Sums
) -> Float32[np.ndarray, "words K classes"]:
    """Posterior of every phrase, times the weight of its sentence and class."""
    _, K, C = q.shape
    posterior = np.empty_like(q)
    native.call("semi_markov_backward", len(offsets) - 1, offsets, K, C, q, weights, posterior, threads())
    return posterior


def _best_native(
    native: Kernels,
    scores: Scores,
    offsets: Offsets,
    classes: Int64[np.ndarray, " sentences"] | None,
    ends: Float32[np.ndarray, " words"] | None,
) -> tuple[Bool[np.ndarray, " words *columns"], Float32[np.ndarray, " sentences *columns"]]:
    """Ends and value of the best segmentation, of every class or of one named class of each sentence."""
    n, K, C = scores.shape
    columns = () if classes is not None else (C,)
    z, value = np.zeros((n, *columns), dtype=bool), np.empty((len(offsets) - 1, *columns), dtype=np.float32)
    native.call("semi_markov_best", len(offsets) - 1, offsets, K, C, scores, classes, ends, z, value, threads())
    return z, value
