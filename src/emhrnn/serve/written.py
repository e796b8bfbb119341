"""A document as a request brings it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Written:
    """A text; who wrote it and about what, for models that read that. None, or a name that training has not seen, is
    the average of those that it has."""

    text: str
    user: str | None = None
    product: str | None = None


@dataclass(frozen=True)
class Columns:
    texts: list[str]
    users: list[str | None]
    products: list[str | None]


def columns_of(documents: Sequence[Written]) -> Columns:
    """The documents as the models take them."""
    return Columns([d.text for d in documents], [d.user for d in documents], [d.product for d in documents])
