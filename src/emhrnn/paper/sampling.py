"""Documents drawn at random from a stream of unknown length, in one pass and little memory."""

from typing import Generic, TypeVar

import numpy as np

T = TypeVar("T")


class Reservoir(Generic[T]):
    """Every item that was offered is in `drawn` with the same chance (Vitter's algorithm R). The same seed and the same
    stream give the same draw."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self._generator = np.random.default_rng(seed)
        self._offered = 0
        self._kept: list[tuple[int, T]] = []

    def offer(self, item: T) -> None:
        number = self._offered
        self._offered += 1
        if len(self._kept) < self.size:
            self._kept.append((number, item))
            return
        place = int(self._generator.integers(self._offered))
        if place < self.size:
            self._kept[place] = (number, item)

    @property
    def drawn(self) -> list[T]:
        """In the order of the stream."""
        return [item for _, item in sorted(self._kept, key=lambda pair: pair[0])]
