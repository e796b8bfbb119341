"""Who wrote a document and about what: rows of a table, one for each user or product id."""

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.errors import ConfigError
from emhrnn.models.predictor import UNKNOWN_ID, check_ids
from emhrnn.shapes import Bool, Float, Int64


class IdScores(nn.Module):
    """What each id says for the classes, 0 at first. An unknown id says nothing."""

    def __init__(self, kind: str, count: int, classes: int) -> None:
        super().__init__()
        self.kind = kind
        check_count(kind, count)
        self.table = nn.Parameter(torch.zeros(count, classes))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None) -> Float[Tensor, "documents classes"]:
        scores, known = id_rows(self.kind, self.table, ids)
        return scores * known


def check_count(kind: str, count: int) -> None:
    """Raise a ConfigError where there are no ids."""
    if count < 1:
        raise ConfigError(
            f"this model reads {kind} ids and the data has none; give data with a {kind} column, or set model.ids=false"
        )


def id_rows(
    kind: str, table: Float[Tensor, "count size"], ids: Int64[np.ndarray, " documents"] | None
) -> tuple[Float[Tensor, "documents size"], Bool[Tensor, "documents 1"]]:
    """Of each id its row, any row for unknown ones; and which are known."""
    ids = check_ids(kind, ids, len(table))
    found = nn.functional.embedding(torch.from_numpy(np.maximum(ids, 0)), table)
    return found, torch.from_numpy(ids != UNKNOWN_ID)[:, None]
