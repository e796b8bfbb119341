"""Names and their ids: classes, users and products."""

from collections.abc import Sequence

UNKNOWN = -1


class NameTable:
    """Gives each new name the next id; a table made from names that are given knows those and no others."""

    def __init__(self, given: Sequence[str] | None = None) -> None:
        self.fixed = given is not None
        self._ids = {name: index for index, name in enumerate(given or ())}

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def names(self) -> list[str]:
        return list(self._ids)

    def id_of(self, name: str | None) -> int:
        """The name's id; -1 for no name, and for a new one where the names are given."""
        if name is None:
            return UNKNOWN
        if self.fixed:
            return self._ids.get(name, UNKNOWN)
        return self._ids.setdefault(name, len(self._ids))


def in_natural_order(names: Sequence[str]) -> list[str]:
    """Numbers by value (2 before 10) when all names are numbers, else by the alphabet."""
    alphabetical = sorted(names)
    try:
        return sorted(alphabetical, key=float)
    except ValueError:
        return alphabetical
