"""Blocks: which free positions are enumerated together (docs/paper.md 1.6).

A position is free when it is not the last word of its sentence: there z = 1 is observed. A block lists some free
positions of one document; the E-step tries all their 2^length settings while the rest of z stays as imputed.

    words      w  w  w  w  E  w  w  w  E        E = sentence end, never enumerated
    exact      0  1  2  3     4  5  6           one block of all free positions
    windows    0  1  2 |0     1  2 |0           words cut in threes; forced ends take a place but are not listed
    local               [0    1  2]             five words around a random centre, clipped to the document

A configuration is one of the 2^length ways to set the boundaries of a block: number c sets slot j to bit j of c. A
block with `free` < length positions has only the configurations c < 2^free; the others would repeat them and are
invalid.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, DataError
from emhrnn.shapes import Bool, Float, Int64

EXACT_LIMIT = 20
LONGEST_BLOCK = 16


@dataclass(frozen=True, eq=False)
class Blocks:
    """Free positions (word indices into the batch) of each block, ascending; -1 fills a block up to `length`.

    Blocks are in the order of their documents.
    """

    positions: Int64[np.ndarray, "blocks length"]
    documents: Int64[np.ndarray, " blocks"]

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def length(self) -> int:
        return int(self.positions.shape[1])

    @property
    def free(self) -> Int64[np.ndarray, " blocks"]:
        """How many positions each block enumerates."""
        free: np.ndarray = (self.positions >= 0).sum(axis=1)
        return free

    def part(self, begin: int, end: int) -> "Blocks":
        return Blocks(self.positions[begin:end], self.documents[begin:end])


def exact_blocks(batch: Batch, limit: int = EXACT_LIMIT) -> Blocks:
    """One block per document with all its free positions."""
    sentences = np.diff(batch.document_offsets)
    free = batch.document_lengths - sentences
    if (free > limit).any():
        d = int(np.argmax(free))
        raise DataError(
            f"exact E-step: document in row {batch.rows[d]} has {batch.document_lengths[d]} words, {free[d]} free "
            f"positions; at most {limit} can be enumerated; use --set em.estep=local, or blocks"
        )
    position = np.flatnonzero(~batch.sentence_final)
    document = batch.document_of_word[position]
    positions = np.full((batch.n_documents, int(free.max())), -1)
    positions[document, np.arange(len(position)) - (np.cumsum(free) - free)[document]] = position
    return Blocks(positions, np.arange(batch.n_documents))


def window_blocks(batch: Batch, length: int) -> Blocks:
    """Non-overlapping windows of `length` words: every free position is in exactly one block.

    Windows without a free position are left out, unless the document has no other. `draw_blocks` takes some of them."""
    _check_length(length)
    windows = -(-batch.document_lengths // length)  # per document
    document = np.repeat(np.arange(batch.n_documents), windows)
    window = np.arange(len(document)) - (np.cumsum(windows) - windows)[document]
    start = batch.word_offsets[document] + window * length
    positions = _free_positions(batch, start[:, None] + np.arange(length), document)
    all_forced = (batch.document_lengths == np.diff(batch.document_offsets))[document]
    keep = (positions[:, :1] >= 0).any(axis=1) | (all_forced & (window == 0))
    return Blocks(positions[keep], document[keep])


def local_blocks(
    batch: Batch,
    count: int = 10,
    length: int = 5,
    *,
    generator: np.random.Generator,
    weights: Float[np.ndarray, " words"] | None = None,
) -> Blocks:
    """`count` blocks of `length` words around random centres, drawn without replacement (local block bootstrap).

    A document of n < count words gets n centres. With `weights`, for example pi (1 - pi), centres are drawn in
    proportion to them."""
    _check_length(length)
    if count < 1:
        raise ConfigError(f"{count} local blocks per document; use at least 1")
    document = batch.document_of_word
    centre = _draw(document, count, generator, weights)
    positions = _free_positions(batch, (centre - length // 2)[:, None] + np.arange(length), document[centre])
    return Blocks(positions, document[centre])


def draw_blocks(blocks: Blocks, count: int, *, generator: np.random.Generator) -> Blocks:
    """At most `count` blocks of each document, drawn without replacement."""
    drawn = _draw(blocks.documents, count, generator)
    return Blocks(blocks.positions[drawn], blocks.documents[drawn])


def _draw(
    document: Int64[np.ndarray, " n"],
    count: int,
    generator: np.random.Generator,
    weights: Float[np.ndarray, " n"] | None = None,
) -> Int64[np.ndarray, " drawn"]:
    """Which of n things, given by their documents in ascending order, are drawn: at most `count` of each document."""
    # Without replacement = the `count` smallest of independent exponentials with the things' rates.
    arrival = generator.standard_exponential(len(document))
    if weights is not None:
        arrival /= np.maximum(weights, 1e-30)
    order = np.lexsort((arrival, document))  # by document, then by arrival
    rank = np.arange(len(document)) - np.searchsorted(document, document)
    return np.sort(order[rank < count])  # ascending, so by document too


def _free_positions(
    batch: Batch, window: Int64[np.ndarray, "blocks length"], document: Int64[np.ndarray, " blocks"]
) -> Int64[np.ndarray, "blocks length"]:
    """The free positions of each window inside its document, first; -1 behind them."""
    begin = batch.word_offsets[document][:, None]
    end = batch.word_offsets[document + 1][:, None]
    inside = (window >= begin) & (window < end)
    free = inside & ~batch.sentence_final[np.where(inside, window, 0)]
    order = np.argsort(~free, axis=1, kind="stable")  # free ones first, else as they stand
    return np.take_along_axis(np.where(free, window, -1), order, axis=1)


def _check_length(length: int) -> None:
    if not 1 <= length <= LONGEST_BLOCK:
        raise ConfigError(
            f"block length {length}: 2^{length} configurations per block; use 1 to {LONGEST_BLOCK} (the paper: 1 to 5)"
        )


def covered(blocks: Blocks, words: int) -> Bool[np.ndarray, " words"]:
    """True at the positions that some block enumerates."""
    mask = np.zeros(words, dtype=bool)
    mask[blocks.positions[blocks.positions >= 0]] = True
    return mask


# ------------------------------------------------------------------ configurations


@lru_cache(maxsize=8)
def bit_table(length: int) -> Bool[np.ndarray, "configurations length"]:
    """Row c holds the bits of configuration c, slot 0 first."""
    table = ((np.arange(1 << length)[:, None] >> np.arange(length)) & 1).astype(bool)
    table.setflags(write=False)
    return table


def current(blocks: Blocks, z: Bool[np.ndarray, " words"]) -> Int64[np.ndarray, " blocks"]:
    """The configuration that z itself has in each block."""
    bits = z[blocks.positions] & (blocks.positions >= 0)
    number: np.ndarray = (bits << np.arange(blocks.length)).sum(axis=1)
    return number


def write(
    z: Bool[np.ndarray, " words"], blocks: Blocks, configuration: Int64[np.ndarray, " blocks"]
) -> Bool[np.ndarray, " words"]:
    """z with one configuration of each block put in; where blocks overlap the later one stands."""
    bits = ((configuration[:, None] >> np.arange(blocks.length)) & 1).astype(bool)
    present = blocks.positions >= 0
    z = z.copy()
    z[blocks.positions[present]] = bits[present]
    return z
