"""Word vectors: a table from word id to x, frozen (the paper) or tuned with the rest. All networks have one. And
vectors of users and products, for the networks that read who wrote a document, and about what."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.corpus.batch import Batch
from emhrnn.layers.dropout import dropout
from emhrnn.layers.recurrent import LearnedRows
from emhrnn.models.identity import check_count, id_rows
from emhrnn.models.model import DocumentModel
from emhrnn.paper.models.settings import IdsConfig, NetworkConfig
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


class IdVectors(nn.Module):
    """The vector of each id. An unknown id reads the mean of all vectors: the average user, or product. With
    `used=False` every document reads the same learned vector, which turns a model into its twin without ids."""

    def __init__(self, kind: str, count: int, size: int, *, used: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.kind = kind
        self.used = used
        if used:
            check_count(kind, count)
        rows = count if used else 1
        self.table = nn.Parameter(torch.empty(rows, size).normal_(0, size**-0.5, generator=generator))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None, documents: int) -> Float[Tensor, "documents size"]:
        if not self.used:
            return self.table.expand(documents, -1)
        vectors, known = id_rows(self.kind, self.table, ids)
        if known.all():
            return vectors
        # No gradient through the mean: one unknown author must not move all the others.
        return torch.where(known, vectors, self.table.detach().mean(0))


class IdNetwork(WordNetwork):
    """A network that also reads a vector of each user and product."""

    def __init__(
        self, config: IdsConfig, table: Table, *, users: int, products: int, generator: torch.Generator
    ) -> None:
        """`users` and `products` are how many there are."""
        super().__init__(config, table)
        self.users = IdVectors("user", users, config.id_size, used=config.ids, generator=generator)
        self.products = IdVectors("product", products, config.id_size, used=config.ids, generator=generator)

    def ids(self, batch: Batch) -> tuple[Float[Tensor, "documents size"], Float[Tensor, "documents size"]]:
        """The vectors of the user and the product of each document."""
        return self.users(batch.users, batch.n_documents), self.products(batch.products, batch.n_documents)
