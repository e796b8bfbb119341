"""Keys: 64-bit names for sets of positions, so that equal things are found by sorting integers.

Every word position of a batch has a fixed random-looking key; a set of positions is named by the exclusive or of its
keys (Zobrist hashing). Two different sets get the same name with probability 2^-64. A plan compares at most some
10^5 names, so a wrong merge is to be expected once in 10^9 plans, and would change one configuration of one document.
"""

import numpy as np
from jaxtyping import Int64


def position_keys(n: int) -> Int64[np.ndarray, " n"]:
    """The keys of positions 0 .. n - 1 (SplitMix64 of the position)."""
    key = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (key ^ (key >> np.uint64(31))).view(np.int64)


def distinct(keys: Int64[np.ndarray, " n"]) -> tuple[Int64[np.ndarray, " distinct"], Int64[np.ndarray, " n"]]:
    """One index of each distinct key, ascending, and for every key which of them it is.

    As np.unique, but on the fast unstable sort, and in the order of the input: neighbours stay neighbours."""
    order = np.argsort(keys)
    in_order = keys[order]
    is_new = np.ones(len(keys), dtype=bool)
    np.not_equal(in_order[1:], in_order[:-1], out=is_new[1:])
    representative = order[is_new]
    by_position = np.argsort(representative)
    rank = inverse(by_position)
    ids = np.empty(len(keys), dtype=np.int64)
    ids[order] = rank[np.cumsum(is_new) - 1]
    return representative[by_position], ids


def inverse(order: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """The permutation that undoes `order`."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank


def by_level(level: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """Stable order by level. 16-bit integers are sorted by radix, ten times faster than wide ones."""
    narrow = level.astype(np.int16) if level.max(initial=0) < 2**15 else level
    return np.argsort(narrow, kind="stable")


def ranges(
    begin: Int64[np.ndarray, " n"], length: Int64[np.ndarray, " n"]
) -> tuple[Int64[np.ndarray, " n_plus_1"], Int64[np.ndarray, " total"], Int64[np.ndarray, " total"]]:
    """The integers begin .. begin + length - 1 of every range, one after the other: offsets, which range, integer."""
    offsets = np.concatenate([[0], np.cumsum(length)])
    owner = np.repeat(np.arange(len(begin)), length)
    return offsets, owner, (begin - offsets[:-1])[owner] + np.arange(offsets[-1])
