r"""Scores of the classes by words and pairs of neighbouring words, added up straight to the logits.

    d  =  sum over the words t of a document of (u[w_t] + u[w_{t-1} w_t]) / sqrt(words of the document)

This is a linear classifier on a bag of words and pairs, which is hard to beat on long documents. Pairs share hashed
buckets and do not cross the end of a sentence. All scores begin at zero.
"""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.corpus.batch import Batch
from emhrnn.layers.dropout import dropout
from emhrnn.paper.models.embedding import WordInputs

PACE = 50.0  # learning rate, times that of the rest: of the first step, later ones are shorter (RowAdagrad)
COMMON = 3_000  # words, which come first in the vocabulary. Rarer ones have learned in few steps
MIX = (2654435761, 40503)  # about 2^32 and 2^16 by the golden ratio: of a pair's first and second word


class NGrams(nn.Module):
    """Scores of the classes by the words and pairs of each document."""

    def __init__(self, vocabulary: int, buckets: int, classes: int) -> None:
        super().__init__()
        self.vocabulary, self.buckets = vocabulary, buckets
        self.table = nn.Parameter(torch.zeros(vocabulary + buckets, classes))  # words, then buckets of pairs
        self.places = WordInputs()

    def forward(
        self, batch: Batch, p: float = 0.0, generator: torch.Generator | None = None
    ) -> Float[Tensor, "documents classes"]:
        """With a generator, each place is left out with probability p, its word and the pair that ends there."""
        place = dropout(self.per_place(batch), p, generator)
        return self._of_words(batch, place) + self._of_pairs(batch, place)

    def apart(self, batch: Batch) -> Float[Tensor, "3 documents classes"]:
        """The scores by common words, by rare words and by pairs."""
        place, common = self.per_place(batch), torch.from_numpy(batch.words < COMMON)
        words = self._of_words(batch, place * common), self._of_words(batch, place * ~common)
        return torch.stack([*words, self._of_pairs(batch, place)])

    def per_place(self, batch: Batch) -> Float[Tensor, " words"]:
        """1 / sqrt(words of the document), of each word."""
        lengths = torch.from_numpy(batch.document_lengths)
        place: Tensor = self.places(lengths.to(self.table.dtype).rsqrt().repeat_interleave(lengths)[:, None])
        return place.squeeze(1)

    def rows_of_pairs(self, batch: Batch, second: Int64[np.ndarray, " pairs"]) -> Int64[Tensor, " pairs"]:
        """The bucket of each pair, given where its second word is."""
        mixed = batch.words[second - 1] * MIX[0] + batch.words[second] * MIX[1]
        return torch.from_numpy(self.vocabulary + mixed % self.buckets)

    def _of_words(self, batch: Batch, place: Float[Tensor, " words"]) -> Float[Tensor, "documents classes"]:
        return self._sums(torch.from_numpy(batch.words), batch.word_offsets, place)

    def _of_pairs(self, batch: Batch, place: Float[Tensor, " words"]) -> Float[Tensor, "documents classes"]:
        second = np.delete(np.arange(batch.n_words), batch.sentence_offsets[:-1])  # words that end a pair
        before = batch.word_offsets - batch.document_offsets  # the first word of a sentence ends none
        return self._sums(self.rows_of_pairs(batch, second), before, place[torch.from_numpy(second)])

    def _sums(
        self, rows: Int64[Tensor, " n"], offsets: Int64[np.ndarray, " documents_plus_1"], place: Float[Tensor, " n"]
    ) -> Float[Tensor, "documents classes"]:
        # A sparse gradient, as that of the word vectors.
        return F.embedding_bag(
            rows, self.table, torch.from_numpy(offsets[:-1]), mode="sum", per_sample_weights=place, sparse=True
        )
