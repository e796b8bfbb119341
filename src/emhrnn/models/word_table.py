"""The word layer's input projections, computed once for each word instead of once for each of its places."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from emhrnn.layers.recurrent import Recurrent
from emhrnn.models.embedding import WordEmbedding


@dataclass(frozen=True, eq=False)
class WordTable:
    """One table per direction of the layer; of the whole vocabulary, or of some of its words."""

    projections: tuple[Float[Tensor, "some gates"], ...]
    rows: Int64[Tensor, " vocabulary"] | None  # row of each word in the tables, -1 where it has none; None: its id

    @classmethod
    @torch.no_grad()
    def of(
        cls, embedding: WordEmbedding, directions: Sequence[Recurrent], words: Int64[np.ndarray, " some"] | None
    ) -> "WordTable":
        if words is None:
            vectors, rows = embedding.vectors(), None
        else:
            chosen = torch.from_numpy(words)
            vectors, rows = embedding(chosen), torch.full((len(embedding.table),), -1)
            rows[chosen] = torch.arange(len(words))
        return cls(tuple(layer.project(vectors) for layer in directions), rows)

    def rows_of(self, words: Int64[Tensor, " words"]) -> Int64[Tensor, " words"] | None:
        """Where the words are in the tables; None if one of them is in none."""
        if self.rows is None:
            return words
        rows = self.rows[words]
        return None if len(rows) and int(rows.min()) < 0 else rows
