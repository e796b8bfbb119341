"""Word vectors: a table from word id to x, frozen (the paper) or tuned with the rest."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

UNKNOWN = 0  # the id of every word outside the vocabulary


class WordEmbedding(nn.Module):
    """x_t = table[word_t]. When the table is frozen the vector of unknown words is still learned: it has no
    pretrained value, and the paper maps every word outside GloVe to it."""

    def __init__(self, table: Float[Tensor, "vocabulary size"], *, tuned: bool) -> None:
        super().__init__()
        self.tuned = tuned
        if tuned:
            self.table = nn.Parameter(table.clone())
        else:
            self.register_buffer("table", table)
            self.unknown = nn.Parameter(table[UNKNOWN].clone())

    @property
    def size(self) -> int:
        return self.table.shape[1]

    def vectors(self) -> Float[Tensor, "vocabulary size"]:
        """The whole table as the model sees it."""
        if self.tuned:
            return self.table
        return torch.cat([self.unknown[None], self.table[1:]])

    def forward(self, words: Int64[Tensor, " words"]) -> Float[Tensor, "words size"]:
        # A sparse gradient: a batch holds few of the words, and an optimiser should pay for those alone.
        x = F.embedding(words, self.table, sparse=self.tuned)
        if not self.tuned:
            x = torch.where((words == UNKNOWN)[:, None], self.unknown, x)
        return x
