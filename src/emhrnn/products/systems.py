"""The systems of the paper as they are with the default settings, for `emhrnn models`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from emhrnn.models.row import Sizes
from emhrnn.models.table import MODELS
from emhrnn.training.config import make_config

CLASSES, WORDS, SIZE = 5, 1000, 100  # of the models that are built to be counted


@dataclass(frozen=True)
class System:
    name: str
    parameters: int | None  # learned numbers besides word vectors; None: they depend on the data or on given weights
    learns: str
    shows: tuple[str, ...]
    needs: tuple[str, ...]
    reference: str
    settings: Mapping[str, Mapping[str, Any]]  # its own defaults, by section
    reads: tuple[str, ...]  # settings of [model]; of [data] and [training] all are read, of [em] by those that learn so

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def systems() -> list[System]:
    rows = []
    for name, row in MODELS.items():
        counted = row.learns != "fit" and "pretrained weights" not in row.needs
        parameters = _parameters(name) if counted else None
        reads = tuple(sorted(row.reads))
        rows.append(System(name, parameters, row.learns, row.shows, row.needs, row.reference, row.settings, reads))
    return rows


def _parameters(name: str) -> int:
    """With five classes and, where ids are needed, one user and one product."""
    defaults = make_config(assignments=[f"model.name={name}"]).model
    sizes = Sizes(classes=CLASSES, users=1, products=1, **defaults.sizes())
    vocabulary = [str(word) for word in range(WORDS)]
    model = MODELS[name].build(sizes, torch.zeros(WORDS, SIZE), vocabulary, 0)
    return sum(p.numel() for part, p in model.named_parameters() if not part.startswith("embedding."))
