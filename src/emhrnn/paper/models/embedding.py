"""Word vectors: a table from word id to x, frozen (the paper) or tuned with the rest."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.layers.recurrent import LearnedRows

UNKNOWN = 0  # the id of every word outside the vocabulary


class WordInputs(nn.Module):
    """Its output has a row for each word of a batch; explanations by gradients are gradients by these rows."""

    def forward(self, x: Float[Tensor, "words size"]) -> Float[Tensor, "words size"]:
        return x


class WordEmbedding(WordInputs):
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

    def frozen(self, words: Int64[Tensor, " words"]) -> tuple[Float[Tensor, "words size"], LearnedRows]:
        """The same for a frozen table, with the gradient confined to the unknown words: a recurrent layer that is
        given both does not compute gradients for all of x."""
        x = F.embedding(words, self.table)
        rows = torch.nonzero(words == UNKNOWN).squeeze(1)
        x[rows] = self.unknown.detach()
        return x, LearnedRows(rows, self.unknown.expand(len(rows), -1))
