r"""Which sentences the configurations need, each once, and the trie of their phrases.

A block's configuration flips some bits of z. What it makes of one sentence is a *variant* of that sentence; blocks
overlap and configurations share, so there are far fewer variants than configurations. All variants of a sentence
form a trie: a node is a phrase *together with all phrases before it*, so its phrase LSTM state exists once.

    words   a b c d E        z = . 1 . . 1      one block on b, c: four variants of the sentence
    paths   [ab][cdE]                           node = path from the root
            [abc][dE]                                   [ab]      [abc]    [abcdE]      level 0
            [ab][c][dE]                                /    \        \
            [abcdE]                                [cdE]    [c]      [dE]               level 1
                                                             |
                                                            [dE]                        level 2

The two nodes [dE] read the same segment, whose phrase vector q exists once, from different states.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks
from emhrnn.em.keys import by_level, distinct, inverse, position_keys, ranges


@dataclass(frozen=True, eq=False)
class Forest:
    """Nodes of many trees, level by level: what each reads, and whose state it goes on from (-1: a fresh one)."""

    inputs: Int64[np.ndarray, " nodes"]
    parents: Int64[np.ndarray, " nodes"]
    level_sizes: Int64[np.ndarray, " levels"]


@dataclass(frozen=True, eq=False)
class Parts:
    """A part is the run of a block's slots that lies in one sentence; `table` lists the parts of each block.

    `flips` of a part count 0 .. 2^width - 1: bit j flips its j-th slot. Row `offsets[part] + flips` stands for them.
    """

    block: Int64[np.ndarray, " parts"]
    sentence: Int64[np.ndarray, " parts"]
    first_slot: Int64[np.ndarray, " parts"]
    width: Int64[np.ndarray, " parts"]
    offsets: Int64[np.ndarray, " parts_plus_1"]
    table: Int64[np.ndarray, "blocks most_parts"]


@dataclass(frozen=True, eq=False)
class SentencePlan:
    """Sentence variants 0 .. sentences - 1 are the sentences as z has them; the others follow."""

    sentences: Int64[np.ndarray, " variants"]  # the sentence that each variant is of
    parts: Parts
    variants: Int64[np.ndarray, " rows"]  # the sentence variant of every (part, flips) row
    segment_begin: Int64[np.ndarray, " segments"]  # distinct phrases, as words begin .. end - 1
    segment_end: Int64[np.ndarray, " segments"]
    phrases: Forest  # the tries; inputs are segments
    path_offsets: Int64[np.ndarray, " variants_plus_1"]  # each variant's path through its trie
    path_nodes: Int64[np.ndarray, " steps"]


def plan_sentences(
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    flip_keys: Int64[np.ndarray, "blocks flips"],
) -> SentencePlan:
    parts = find_parts(batch, blocks)
    _, part, flips = ranges(np.zeros(len(parts.block), np.int64), 1 << parts.width)  # (rows,)
    changed = np.flatnonzero(flips)
    keys = flip_keys[parts.block[part], flips << parts.first_slot[part]]
    chosen, ids = distinct(keys[changed])
    variants = parts.sentence[part]  # flips = 0: the sentence as it is
    variants[changed] = batch.n_sentences + ids
    row = changed[chosen]  # one row for every new variant
    sentence = np.concatenate([np.arange(batch.n_sentences), parts.sentence[part[row]]])
    words = _variant_words(batch, z, blocks, parts, sentence, part[row], flips[row])
    return SentencePlan(sentence, parts, variants, *_phrase_trie(batch, sentence, *words))


def flip_keys(blocks: Blocks, words: int) -> Int64[np.ndarray, "blocks flips"]:
    """The key of every subset of every block's positions, by doubling: with slot j = without it, xor its key."""
    keys = np.where(blocks.positions >= 0, position_keys(words)[blocks.positions], 0)
    table = np.zeros((len(blocks), 1 << blocks.length), dtype=np.int64)
    for slot in range(blocks.length):
        half = 1 << slot
        np.bitwise_xor(table[:, :half], keys[:, slot, None], out=table[:, half : 2 * half])
    return table


def find_parts(batch: Batch, blocks: Blocks) -> Parts:
    present = blocks.positions >= 0
    sentence = np.where(present, batch.sentence_of_word[blocks.positions], -1)
    starts = present.copy()
    starts[:, 1:] &= sentence[:, 1:] != sentence[:, :-1]
    block, first_slot = np.nonzero(starts)
    after = np.append(first_slot[1:], 0)
    last_of_block = np.append(block[1:] != block[:-1], True)
    width = np.where(last_of_block, blocks.free[block], after) - first_slot
    column = (np.cumsum(starts, axis=1) - 1)[block, first_slot]
    table = np.full((len(blocks), int(column.max(initial=-1)) + 1), -1)
    table[block, column] = np.arange(len(block))
    offsets = np.concatenate([[0], np.cumsum(1 << width)])
    return Parts(block, sentence[block, first_slot], first_slot, width, offsets, table)


def _variant_words(
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    parts: Parts,
    sentence: Int64[np.ndarray, " variants"],
    part: Int64[np.ndarray, " changed"],
    flips: Int64[np.ndarray, " changed"],
) -> tuple[Int64[np.ndarray, " variants_plus_1"], Int64[np.ndarray, " steps"], Bool[np.ndarray, " steps"]]:
    """The words of every variant, one variant after the other: offsets, positions and z with the flips done."""
    offsets, _, position = ranges(batch.sentence_offsets[sentence], batch.sentence_lengths[sentence])
    z_variant = z[position]
    word_shift = (offsets[:-1] - batch.sentence_offsets[sentence])[batch.n_sentences :]  # batch word -> variant word
    for slot in range(int(parts.width.max(initial=0))):
        flipped = np.flatnonzero((flips >> slot) & 1)
        at = part[flipped]
        word = blocks.positions[parts.block[at], parts.first_slot[at] + slot]
        z_variant[word + word_shift[flipped]] ^= True
    return offsets, position, z_variant


def _phrase_trie(
    batch: Batch,
    sentence: Int64[np.ndarray, " variants"],
    offsets: Int64[np.ndarray, " variants_plus_1"],
    position: Int64[np.ndarray, " steps"],
    z_variant: Bool[np.ndarray, " steps"],
) -> tuple[
    Int64[np.ndarray, " segments"],
    Int64[np.ndarray, " segments"],
    Forest,
    Int64[np.ndarray, " variants_plus_1"],
    Int64[np.ndarray, " phrases"],
]:
    """Segments, trie and paths. A node is named by the xor of the keys of all phrase ends on its path."""
    ends = np.flatnonzero(z_variant)
    path_offsets = np.searchsorted(ends, offsets)
    path_lengths = np.diff(path_offsets)
    last = position[ends]  # the last word of every phrase of every variant
    begin = np.empty_like(last)
    begin[1:] = last[:-1] + 1
    begin[path_offsets[:-1]] = batch.sentence_offsets[sentence]
    level = np.arange(len(ends)) - np.repeat(path_offsets[:-1], path_lengths)

    running = np.bitwise_xor.accumulate(position_keys(batch.n_words)[last])
    before = np.concatenate([[0], running])[path_offsets[:-1]]
    chosen, ids = distinct(running ^ np.repeat(before, path_lengths))
    order = by_level(level[chosen])
    node = inverse(order)[ids]
    chosen = chosen[order]
    parents = np.where(level[chosen] > 0, node[chosen - 1], -1)
    segment, inputs = distinct((begin[chosen] << 32) | last[chosen])
    forest = Forest(inputs, parents, np.bincount(level[chosen]))
    return begin[chosen][segment], last[chosen][segment] + 1, forest, path_offsets, node
