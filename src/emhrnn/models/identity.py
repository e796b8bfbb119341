"""Who wrote a document and about what: a vector, or scores of the classes, per user or product id, for the models that
read them."""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.errors import ConfigError
from emhrnn.models.predictor import UNKNOWN_ID, check_ids
from emhrnn.shapes import Bool, Float, Int64


class IdVectors(nn.Module):
    """The vector of each id. An unknown id reads the mean of all vectors: the average user, or product. With
    `used=False` every document reads the same learned vector, which turns a model into its twin without ids."""

    def __init__(self, kind: str, count: int, size: int, *, used: bool, generator: torch.Generator) -> None:
        super().__init__()
        self.kind = kind
        self.used = used
        if used:
            _check_any(kind, count)
        rows = count if used else 1
        self.table = nn.Parameter(torch.empty(rows, size).normal_(0, size**-0.5, generator=generator))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None, documents: int) -> Float[Tensor, "documents size"]:
        if not self.used:
            return self.table.expand(documents, -1)
        vectors, known = _rows(self.kind, self.table, ids)
        if known.all():
            return vectors
        # No gradient through the mean: one unknown author must not move all the others.
        return torch.where(known, vectors, self.table.detach().mean(0))


class IdScores(nn.Module):
    """What each id says for the classes, 0 at first. An unknown id says nothing."""

    def __init__(self, kind: str, count: int, classes: int) -> None:
        super().__init__()
        self.kind = kind
        _check_any(kind, count)
        self.table = nn.Parameter(torch.zeros(count, classes))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None) -> Float[Tensor, "documents classes"]:
        scores, known = _rows(self.kind, self.table, ids)
        return scores * known


def _check_any(kind: str, count: int) -> None:
    if count < 1:
        raise ConfigError(
            f"this model reads {kind} ids and the data has none; give data with a {kind} column, or set model.ids=false"
        )


def _rows(
    kind: str, table: Float[Tensor, "count size"], ids: Int64[np.ndarray, " documents"] | None
) -> tuple[Float[Tensor, "documents size"], Bool[Tensor, "documents 1"]]:
    """Of each id its row, any row for unknown ones; and which are known."""
    ids = check_ids(kind, ids, len(table))
    found = nn.functional.embedding(torch.from_numpy(np.maximum(ids, 0)), table)
    return found, torch.from_numpy(ids != UNKNOWN_ID)[:, None]
