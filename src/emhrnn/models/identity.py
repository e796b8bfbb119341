"""Who wrote a document and about what: a vector per user or product id, for the models that read them."""

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from emhrnn.errors import ConfigError, DataError

UNKNOWN = -1  # the id of a user or product that training has not seen


class IdVectors(nn.Module):
    """The vector of each id. An unknown id reads the mean of all vectors: the average user, or product. With
    `used=False` every document reads the same learned vector, which turns a model into its twin without ids."""

    def __init__(self, kind: str, count: int, size: int, *, used: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.kind = kind
        self.used = used
        if used and count < 1:
            raise ConfigError(
                f"this model reads {kind} ids and the data has none; give data with a {kind} column, or set "
                "model.ids=false"
            )
        rows = count if used else 1
        self.table = nn.Parameter(torch.empty(rows, size).normal_(0, size**-0.5, generator=generator))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None, documents: int) -> Float[Tensor, "documents size"]:
        if not self.used:
            return self.table.expand(documents, -1)
        if ids is None:
            raise DataError(
                f"this model reads {self.kind} ids and the data has none; give data with a {self.kind} column"
            )
        if ids.max() >= len(self.table):
            raise DataError(
                f"{self.kind} id {ids.max()} where the model knows {len(self.table)}; ids that training has not seen "
                f"must be {UNKNOWN}"
            )
        known = torch.from_numpy(ids != UNKNOWN)[:, None]
        vectors = nn.functional.embedding(torch.from_numpy(np.maximum(ids, 0)), self.table)
        if known.all():
            return vectors
        # No gradient through the mean: one unknown author must not move all the others.
        return torch.where(known, vectors, self.table.detach().mean(0))
