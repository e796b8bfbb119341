"""Word vectors: a table from word id to x, frozen (the paper) or tuned with the rest. All networks have
one."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.corpus.batch import Batch
from emhrnn.layers.dropout import dropout
from emhrnn.layers.recurrent import LearnedRows
from emhrnn.models.model import DocumentModel
from emhrnn.paper.models.rows import NetworkConfig
from emhrnn.shapes import Float, Int64

Table = Float[Tensor, "vocabulary size"]  # of word vectors

UNKNOWN = 0  # the id of every word outside the vocabulary


class WordInputs(nn.Module):
    """Its output has a row for each word of a batch; explanations by gradients are gradients by these rows."""

    def forward(self, x: Float[Tensor, "words size"]) -> Float[Tensor, "words size"]:
        return x


class WordEmbedding(WordInputs):
    """x_t = table[word_t]. When the table is frozen the vector of unknown words is still learned: it has no
    pretrained value, and the paper maps every word outside GloVe to it."""

    def __init__(self, table: Table, *, tuned: bool) -> None:
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

    def vectors(self) -> Table:
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


class WordNetwork(DocumentModel):
    """A network on word vectors, with dropout where a generator is given."""

    def __init__(self, config: NetworkConfig, table: Table) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.embedding = WordEmbedding(table, tuned=config.tune_embedding)

    def dropped(self, h: Float[Tensor, "n H"], generator: torch.Generator | None) -> Float[Tensor, "n H"]:
        return dropout(h, self.dropout, generator)

    def inputs(self, batch: Batch, generator: torch.Generator | None) -> Float[Tensor, "words size"]:
        """x of each word."""
        return self.dropped(self.embedding(torch.from_numpy(batch.words)), generator)
