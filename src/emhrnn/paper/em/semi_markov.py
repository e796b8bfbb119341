"""The exact posterior over all segmentations of sentences into phrases of at most K words, as an object that answers
the questions people ask of it.

    p(Z | y, w) = exp( sum of scores_y over the phrases of Z ) / exp( log_partition_y )         for every sentence

Nothing is enumerated or approximated: everything comes from one forward and one backward pass, in time and memory of
O(words x K x classes). layers/semi_markov.py says what scores are, and how the passes work; -inf forbids a phrase.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from emhrnn.layers.native.library import check_index, check_offsets
from emhrnn.layers.order import Order
from emhrnn.layers.semi_markov import Offsets, backward_pass, best_cut, forward_pass
from emhrnn.shapes import Bool, Float, Float64, Int64


@dataclass(frozen=True, eq=False)
class SegmentPosterior:
    """p(Z | y, w) of every sentence and every class. Raises an IndexError if offsets do not match the scores.

    Where no segmentation is possible, log_partition is -inf and all probabilities are 0.
    """

    scores: Float[Tensor, "words K classes"]  # of the phrase of k words that ends at word t, at [t, k - 1]
    sentence_offsets: Offsets

    def __post_init__(self) -> None:
        check_offsets(self._offsets, len(self.scores))
        if not self.scores.shape[1]:
            raise IndexError("scores have no widths; phrases need at least one word, K >= 1")

    @torch.no_grad()
    def of_classes(self, classes: Int64[Tensor, " sentences"]) -> "SegmentPosterior":
        """The posterior of one class for each sentence, for example the predicted one: it has a single column."""
        if len(classes) != len(self._lengths):
            raise IndexError(f"{len(classes)} classes for {len(self._lengths)} sentences; give one for each")
        check_index(classes, self.scores.shape[2])
        column = classes[self._sentence][:, None, None].expand(-1, self.scores.shape[1], 1)  # (words, K, 1)
        return SegmentPosterior(self.scores.gather(2, column), self.sentence_offsets)

    # ------------------------------------------------------------------ probabilities

    @property
    def log_partition(self) -> Float[Tensor, "sentences classes"]:
        """log of the sum over all segmentations of exp(sum of scores)."""
        return self._forward[0]

    @property
    def widths(self) -> Float[Tensor, "words K classes"]:
        """q: P(the phrase that ends at this word has k words | a phrase ends at this word)."""
        return self._forward[1]

    @cached_property
    def phrases(self) -> Float[Tensor, "words K classes"]:
        """P(the k words that end at this word are a phrase). Over all phrases that hold a word, it sums to 1."""
        ones = np.ones_like(self.log_partition.numpy())
        return torch.from_numpy(backward_pass(self.widths.numpy(), self.sentence_offsets, ones))

    @cached_property
    def gamma(self) -> Float[Tensor, "words classes"]:
        """P(a phrase ends at this word); 1 at the ends of sentences."""
        return self.phrases.sum(dim=1).clamp(max=1)  # a sum of probabilities may end one rounding above 1

    @cached_property
    def entropy(self) -> Float[Tensor, "sentences classes"]:
        """In nats: log_partition - E[sum of scores]. Summed as gamma times the entropy of the widths at every word, so
        that long sentences lose no digits."""
        by_word = self.gamma.double() * torch.special.entr(self.widths.double()).sum(dim=1)  # (words, classes)
        return self._by_sentence(by_word).to(self.scores.dtype)

    @torch.no_grad()
    def log_probability(self, z: Bool[Tensor, " words *classes"]) -> Float[Tensor, "sentences classes"]:
        """log p(Z | y, w) of one segmentation for all classes (words), or of one for each class (words, classes). -inf
        where a phrase is too long or forbidden. Raises a ValueError if a sentence does not end with a phrase."""
        words, K, C = self.scores.shape
        z = z if z.ndim == 2 else z[:, None].expand(-1, C)  # (words, classes)
        if z.shape != (words, C):
            raise IndexError(f"a segmentation of shape {tuple(z.shape)} for {words} words and {C} classes")
        final = self._offsets[1:][self._lengths > 0] - 1
        if not bool(z[final].all()):
            raise ValueError("z must be true at the last word of every sentence, where its last phrase ends")
        place = torch.arange(words)[:, None]  # (words, 1)
        ended = torch.where(z, place + 1, 0).cummax(dim=0).values  # (words, classes): start of the next phrase
        begin = torch.cat([ended.new_zeros(min(words, 1), C), ended[:-1]])  # (words, classes)
        width = place - torch.maximum(begin, self._offsets[self._sentence][:, None])  # less 1
        score = self.scores.gather(1, width.clamp(max=K - 1)[:, None]).squeeze(1).double()  # (words, classes)
        score = torch.where(z, torch.where(width < K, score, -torch.inf), 0)
        possible = self.log_partition > -torch.inf
        total = self._by_sentence(score) - torch.where(possible, self.log_partition, 0)
        return torch.where(possible, total, -torch.inf).to(self.scores.dtype)

    # ------------------------------------------------------------------ segmentations

    def best(self) -> tuple[Bool[Tensor, "words classes"], Float[Tensor, "sentences classes"]]:
        """The most probable segmentation, true at the last word of each phrase, and its sum of scores. `best_cut` says
        which one wins of two equal ones."""
        z, value = best_cut(self.scores.detach().numpy(), self.sentence_offsets)
        return torch.from_numpy(z), torch.from_numpy(value)

    def k_best(self, n: int) -> tuple[Bool[Tensor, "n words classes"], Float[Tensor, "n sentences classes"]]:
        """The n most probable segmentations of every sentence, best first, and their sums of scores. Where there are
        fewer, the sum is -inf, and z is true at the last word of the sentence only. Memory O(n x words x classes).

        Raises a ValueError if n < 1.
        """
        if n < 1:
            raise ValueError(f"n = {n}; ask for at least one segmentation")
        z, values = _k_best_cuts(self.scores, self._offsets, n)
        return z, values.to(self.scores.dtype)

    def sample(self, n: int, generator: np.random.Generator) -> Bool[Tensor, "n words classes"]:
        """n independent segmentations of every sentence for every class. Where none is possible, z is true at the last
        word only."""
        words, _, C = self.scores.shape
        cumulative = self.widths.double().cumsum(dim=1)  # (words, K, classes)
        total = cumulative[:, -1]  # (words, classes); 1 but for roundings, or 0
        below = torch.nextafter(total, torch.zeros_like(total))
        z = torch.zeros(n, words, C, dtype=torch.bool)
        for drawn in z:
            # A width for every word, as if a phrase ended there: of all segmentations, one has these widths only.
            chance = torch.from_numpy(generator.random((words, C)))
            threshold = torch.minimum(chance * total, below)[:, None]  # (words, 1, classes)
            chosen = cumulative > threshold  # (words, K, classes): this width or a longer one
            chosen[:, 1:] ^= chosen[:, :-1].clone()
            allowed = torch.where(chosen, 0.0, -torch.inf).to(self.scores.dtype)  # (words, K, classes)
            drawn.copy_(torch.from_numpy(best_cut(allowed.numpy(), self.sentence_offsets)[0]))
        return z

    # ------------------------------------------------------------------

    @cached_property
    def _forward(self) -> tuple[Tensor, Tensor]:
        log_partition, q = forward_pass(self.scores.detach().numpy(), self.sentence_offsets)
        assert q is not None
        return torch.from_numpy(log_partition), torch.from_numpy(q)

    @cached_property
    def _offsets(self) -> Int64[Tensor, " sentences_plus_1"]:
        return torch.as_tensor(self.sentence_offsets)

    @cached_property
    def _lengths(self) -> Int64[Tensor, " sentences"]:
        return self._offsets.diff()

    @cached_property
    def _sentence(self) -> Int64[Tensor, " words"]:
        return torch.repeat_interleave(self._lengths)

    def _by_sentence(self, values: Float64[Tensor, "words classes"]) -> Float64[Tensor, "sentences classes"]:
        return values.new_zeros(len(self._lengths), values.shape[1]).index_add_(0, self._sentence, values)


# ------------------------------------------------------------------ the n best: Viterbi with lists of n values
#
#     values(t) = the n highest of { values(t - k)[rank] + scores[t, k - 1] : k = 1 .. K, rank = 1 .. n }
#
# Each pair (k, rank) is another segmentation, so all n are different. Sums are in double precision.


@torch.no_grad()
def _k_best_cuts(
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
    order = Order(offsets.numpy())
    packed = scores[order.rows].double()  # (words, K, classes), word by word of all sentences
    words, K, C = packed.shape
    before = torch.zeros(words, n, C, dtype=torch.int64)
    window = packed.new_full((len(offsets) - 1, K, n, C), -torch.inf)  # of words t - 1, t - 2, ...; longest first
    window[:, 0, 0] = 0  # one segmentation of no words
    start = 0
    for t, size in enumerate(order.batch_sizes.tolist()):
        rows, widths = slice(start, start + size), min(K, t + 1)
        sums = window[:size, :widths] + packed[rows, :widths, None]  # (running, widths, n, classes)
        highest, before[rows] = sums.flatten(1, 2).topk(n, dim=1)  # (running, n, classes)
        window[:size, 1:] = window[:size, :-1].clone()
        window[:size, 0] = highest
        start += size
    values = torch.empty(n, len(offsets) - 1, C, dtype=torch.float64)
    values[:, order.sequences] = window[:, 0].transpose(0, 1)
    return values, before[order.inverse].transpose(0, 1)


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
