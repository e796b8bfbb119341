"""Owen's value as it is defined: the mean over all orders that keep sentences and phrases together."""

from collections.abc import Callable, Sequence
from itertools import permutations, product

import numpy as np


def owen_oracle(game: Callable[[frozenset[int]], float], tree: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    """`tree` has the words of each phrase of each sentence; `game` gives v of a set of words."""
    orders = list(_orders(tree))
    values = np.zeros(sum(len(phrase) for sentence in tree for phrase in sentence))
    for order in orders:
        joined = frozenset[int]()
        for word in order:
            values[word] += (game(joined | {word}) - game(joined)) / len(orders)
            joined |= {word}
    return values


def _orders(node: Sequence | int) -> list[list[int]]:
    """Of the words below a node: its children in any order, each in any order of its own."""
    if not isinstance(node, Sequence):
        return [[node]]
    inside = [_orders(child) for child in node]
    return [
        [word for part in parts for word in part]
        for arrangement in permutations(inside)
        for parts in product(*arrangement)
    ]
