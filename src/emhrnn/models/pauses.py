r"""Where a reader would pause: what the punctuation of the training documents tells about the ends of phrases.

    o_t  =  e[w_t] + b[w_(t+1)]       pi_t = sigmoid(W_pi h1_t + b_pi + o_t)

    e[w]    log-odds that a pause follows w, over those of any word: "dog" high, "the" and "very" low
    b[w]    log-odds that a pause goes before w, likewise: "because" and "the" high, "dog" low

A pause is a punctuation mark or an end of the sentence. Between two words that are both usual at a pause, a phrase is
likely to end, comma or not; behind a mark it all but surely does, and before one it does not. Words that training saw
seldom are taken for average ones.

A label holds little information about phrase ends (docs/em_hrnn.md); without this they end anywhere. With
it they read as phrases, and EM moves their ends from there on.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.shapes import Float

MARK = re.compile(r"[,;:.!?)\]…—–，、。；：！？）】」』]+|--+").fullmatch
SURE = 6.0  # log-odds of an end behind a mark; twice as much against one before it
SMOOTH = 10.0  # times that an average word is added to the counts of each


class Pauses(nn.Module):
    """Counts, and the odds that follow from them. Without documents, odds of one: it says nothing."""

    counts: Float[Tensor, "3 vocabulary"]  # of each word: times in all, before a pause, behind one
    odds: Float[Tensor, "2 vocabulary"]  # e and b

    def __init__(self, vocabulary: Sequence[str]) -> None:
        super().__init__()
        self.marks = np.array([MARK(word) is not None for word in vocabulary], dtype=bool)
        self.register_buffer("counts", torch.zeros(3, len(vocabulary)))
        self.register_buffer("odds", torch.zeros(2, len(vocabulary)))

    def forward(self, batch: Batch) -> Float[Tensor, " words"]:
        """o of every word. That of the last of a sentence is of no use to anybody, since it ends a phrase anyway."""
        words = torch.from_numpy(batch.words)
        return self.odds[0].index_select(0, words) + self.odds[1].index_select(0, words.roll(-1))

    @property
    def empty(self) -> bool:
        return not bool(self.counts.any())

    def add(self, batches: Iterable[Batch]) -> None:
        """Count the words of more documents."""
        for batch in batches:
            self.counts += torch.from_numpy(self._count(batch)).to(self.counts.dtype)
        n, before, behind = self.counts
        marks = torch.from_numpy(self.marks)
        self.odds[0] = torch.where(marks, SURE, _log_odds_ratio(before, n))
        self.odds[1] = torch.where(marks, -2 * SURE, _log_odds_ratio(behind, n))

    def _count(self, batch: Batch) -> Float[np.ndarray, "3 vocabulary"]:
        """Marks themselves are no words, and are not counted. A document counts as often as its weight says."""
        mark = self.marks[batch.words]
        last = batch.sentence_final
        first = np.roll(last, 1)  # the last word of the batch ends a sentence
        events = np.ones(batch.n_words, dtype=bool), np.roll(mark, -1) | last, np.roll(mark, 1) | first
        times = np.ones(batch.n_documents) if batch.weights is None else batch.weights
        weight = np.repeat(times, batch.document_lengths)[~mark]
        words = batch.words[~mark]
        size = len(self.marks)
        counts = [np.bincount(words, weights=event[~mark] * weight, minlength=size) for event in events]
        return np.stack(counts).astype(np.float64)  # of no words, NumPy's counts are integers


def _log_odds_ratio(events: Float[Tensor, " words"], n: Float[Tensor, " words"]) -> Float[Tensor, " words"]:
    """log-odds of an event for each word, minus those for all words."""
    rate = (events.sum() + 1) / (n.sum() + 2)
    return torch.logit((events + SMOOTH * rate) / (n + SMOOTH)) - torch.logit(rate)
