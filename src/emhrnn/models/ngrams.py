r"""What words and pairs of neighbours say by themselves, straight to the logits, past every recurrent layer.

    d  =  sum over the words t of a document of (u[w_t] + u[w_{t-1} w_t]) / sqrt(words of the document)

A bag of words and pairs is what a linear classifier reads, and it is hard to beat on long documents. It does not depend
on z. Pairs share hashed buckets and do not reach over the end of a sentence. All begin at zero, so that an untrained
model is the one without this.

The model is a product of two experts, p(y) ~ p_recurrent(y) p_ngrams(y), which learn apart: each is fitted to the
labels as if the other were not there (training/em_objective.py). Fitted together, words and pairs learn the
training documents by heart, and the recurrent layers, to which nothing is left to explain, fall behind. How much each
has to say in the end is fitted on the validation data: the recurrent layers, common words, rare words, which count for
topics, and pairs (evaluation/calibration.py).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.corpus.batch import Batch
from emhrnn.layers.dropout import dropout

PACE = 50.0  # learning rate, times that of the rest: of the first step, later ones are shorter (row_adagrad.py)
COMMON = 3_000  # words, which come first in the vocabulary. Rarer ones have learned in few steps: they may need a push
MIX = (2654435761, 40503)  # about 2^32 and 2^16 by the golden ratio: of a pair's first and second word


@dataclass(frozen=True)
class Shares:
    """How much each expert has to say: the recurrent layers, common words, rare words, pairs."""

    recurrent: float
    common: float
    rare: float
    pairs: float


class NGrams(nn.Module):
    """Scores of the classes by the words and pairs of each document."""

    def __init__(self, vocabulary: int, buckets: int, classes: int) -> None:
        super().__init__()
        self.vocabulary, self.buckets = vocabulary, buckets
        self.table = nn.Parameter(torch.zeros(vocabulary + buckets, classes))  # words, then buckets of pairs

    def forward(
        self, batch: Batch, p: float = 0.0, generator: torch.Generator | None = None
    ) -> Float[Tensor, "documents classes"]:
        """With a generator, each place is left out with probability p, its word and the pair that ends there."""
        share = dropout(self.per_place(batch), p, generator)
        return self._words_say(batch, share) + self._pairs_say(batch, share)

    def apart(self, batch: Batch) -> Float[Tensor, "3 documents classes"]:
        """What common words say, what rare words say, and what pairs say."""
        share, common = self.per_place(batch), torch.from_numpy(batch.words < COMMON)
        return torch.stack(
            [
                self._words_say(batch, share * common),
                self._words_say(batch, share * ~common),
                self._pairs_say(batch, share),
            ]
        )

    def weigh(self, common: float, rare: float, pairs: float) -> None:
        """From now on, each says so many times what it said."""
        with torch.no_grad():
            self.table[: min(COMMON, self.vocabulary)] *= common
            self.table[COMMON : self.vocabulary] *= rare
            self.table[self.vocabulary :] *= pairs

    def of_words(self, batch: Batch) -> Float[Tensor, "words classes"]:
        """What each word adds to the logits of its document: its own score, and half of each pair it is in."""
        scores = self.table[torch.from_numpy(batch.words)].clone()
        second = ends_of_pairs(batch)
        half = self.table[self.rows_of_pairs(batch, second)] / 2
        for word in (second - 1, second):
            scores.index_add_(0, torch.from_numpy(word), half)
        return scores * self.per_place(batch)[:, None]

    def per_place(self, batch: Batch) -> Float[Tensor, " words"]:
        """1 / sqrt(words of the document), of each word."""
        lengths = torch.from_numpy(batch.document_lengths)
        return lengths.to(self.table.dtype).rsqrt().repeat_interleave(lengths)

    def rows_of_pairs(self, batch: Batch, second: Int64[np.ndarray, " pairs"]) -> Int64[Tensor, " pairs"]:
        """The bucket of each pair, given where its second word is."""
        mixed = batch.words[second - 1] * MIX[0] + batch.words[second] * MIX[1]
        return torch.from_numpy(self.vocabulary + mixed % self.buckets)

    def _words_say(self, batch: Batch, share: Float[Tensor, " words"]) -> Float[Tensor, "documents classes"]:
        return self._sums(torch.from_numpy(batch.words), batch.word_offsets, share)

    def _pairs_say(self, batch: Batch, share: Float[Tensor, " words"]) -> Float[Tensor, "documents classes"]:
        second = ends_of_pairs(batch)
        before = batch.word_offsets - batch.document_offsets  # every sentence has a first word, which ends none
        return self._sums(self.rows_of_pairs(batch, second), before, share[torch.from_numpy(second)])

    def _sums(
        self, rows: Int64[Tensor, " n"], offsets: Int64[np.ndarray, " documents_plus_1"], share: Float[Tensor, " n"]
    ) -> Float[Tensor, "documents classes"]:
        # A sparse gradient, as that of the word vectors.
        return F.embedding_bag(
            rows, self.table, torch.from_numpy(offsets[:-1]), mode="sum", per_sample_weights=share, sparse=True
        )


def ends_of_pairs(batch: Batch) -> Int64[np.ndarray, " pairs"]:
    """Where words are that have another one before them in their sentence."""
    return np.delete(np.arange(batch.n_words), batch.sentence_offsets[:-1])
