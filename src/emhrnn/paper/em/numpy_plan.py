r"""What the plan of an E-step is, and how it is made in NumPy: as plan.cpp does, with sorting in the place of hashing.

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

A *document variant* is a document with some sentences replaced by variants. Up to its last changed sentence its
forward states are those of the variant without that change (its parent); from there on it has a chain of its own.
Backward, the same with the first changed sentence.

    document        s0   s1   s2   s3   s4
    as z has it     F0 - F1 - F2 - F3 - F4
    s2 changed             \_ F2'- F3'- F4'         own chain from s2
    s2, s3 changed                \_F3"- F4"        own chain from s3, parent: the variant with only s2 changed

Keys are 64-bit names for sets of positions, so that equal things are found by sorting integers: every word position of
a batch has a fixed random-looking key, and a set of positions is named by the exclusive or of its keys (Zobrist
hashing). Two different sets get the same name with probability 2^-64. A plan compares at most some 10^5 names, so a
wrong merge is to be expected once in 10^9 plans, and would change one configuration of one document.

`depth` counts sentences in reading direction (from the end when reading backward), so that one function serves both.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.paper.em.blocks import Blocks, current
from emhrnn.paper.em.blocks import valid as valid_configurations


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


@dataclass(frozen=True, eq=False)
class DocumentPlan:
    """Distinct documents; the sentence layer's states of variant v are rows offsets[v] .. offsets[v + 1] of
    `forward_nodes` and `backward_nodes`."""

    documents: Int64[np.ndarray, " variants"]  # the document that each variant is of
    forward: Forest  # inputs are sentence variants
    backward: Forest
    offsets: Int64[np.ndarray, " variants_plus_1"]
    forward_nodes: Int64[np.ndarray, " states"]
    backward_nodes: Int64[np.ndarray, " states"]
    configurations: Int64[np.ndarray, "blocks configurations"]  # each one's document variant; -1 where invalid


@dataclass(frozen=True, eq=False)
class EStepPlan:
    """What is to be computed for all configurations of some blocks."""

    sentences: SentencePlan
    documents: DocumentPlan


def numpy_plan(batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks) -> EStepPlan:
    """The plan of all configurations of the blocks, the rest as in z."""
    keys = flip_keys(blocks, batch.n_words)
    sentences = plan_sentences(batch, z, blocks, keys)
    return EStepPlan(sentences, _plan_documents(batch, z, blocks, keys, sentences))


def plan_sentences(
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    flip_keys: Int64[np.ndarray, "blocks flips"],
) -> SentencePlan:
    """The sentences that the configurations need, each once, and the trie of their phrases."""
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


def find_parts(batch: Batch, blocks: Blocks) -> Parts:
    """The parts of all blocks, in the order of the blocks."""
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


def flip_keys(blocks: Blocks, words: int) -> Int64[np.ndarray, "blocks flips"]:
    """The key of every subset of every block's positions, by doubling: with slot j = without it, xor its key."""
    keys = np.where(blocks.positions >= 0, position_keys(words)[blocks.positions], 0)
    table = np.zeros((len(blocks), 1 << blocks.length), dtype=np.int64)
    for slot in range(blocks.length):
        half = 1 << slot
        np.bitwise_xor(table[:, :half], keys[:, slot, None], out=table[:, half : 2 * half])
    return table


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


@dataclass(frozen=True, eq=False)
class _Change:
    """The last (or first) sentence that a document variant changes; depth 0 and the sentence itself if none."""

    depth: Int64[np.ndarray, " variants"]
    sentence_variant: Int64[np.ndarray, " variants"]
    parent: Int64[np.ndarray, " variants"]  # the document variant without this change; of an unchanged one: itself


def _plan_documents(
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    flip_keys: Int64[np.ndarray, "blocks flips"],
    sentences: SentencePlan,
) -> DocumentPlan:
    valid = valid_configurations(blocks)
    row_block, row_flips = np.nonzero(valid)  # a row is a block and the slots it flips
    row_offsets = np.concatenate([[0], np.cumsum(1 << blocks.free)])
    document_keys = position_keys(batch.n_words + batch.n_documents)[batch.n_words :]
    chosen, variant_of_row = distinct(flip_keys[valid] ^ document_keys[blocks.documents[row_block]])
    block, flips = row_block[chosen], row_flips[chosen]
    documents = blocks.documents[block]
    first = batch.document_offsets[documents]
    last = batch.document_offsets[documents + 1] - 1

    def variant(flips: Int64[np.ndarray, " variants"]) -> Int64[np.ndarray, " variants"]:
        ids: np.ndarray = variant_of_row[row_offsets[block] + flips]
        return ids

    changed_last, changed_first = _outer_changes(
        sentences.parts, sentences.variants, block, flips, first, last, variant
    )
    lengths = last - first + 1
    forward, forward_node = _chains(lengths, changed_last, lambda v, depth: first[v] + depth)
    backward, backward_node = _chains(lengths, changed_first, lambda v, depth: last[v] - depth)
    offsets, v, depth = ranges(np.zeros_like(lengths), lengths)

    flips_of_configuration = np.arange(1 << blocks.length) ^ current(blocks, z)[:, None]
    row = np.where(valid, row_offsets[:-1, None] + flips_of_configuration, 0)
    return DocumentPlan(
        documents=documents,
        forward=forward,
        backward=backward,
        offsets=offsets,
        forward_nodes=forward_node(v, depth),
        backward_nodes=backward_node(v, lengths[v] - 1 - depth),
        configurations=np.where(valid, variant_of_row[row], -1),
    )


def _outer_changes(
    parts: Parts,
    sentence_variants: Int64[np.ndarray, " rows"],
    block: Int64[np.ndarray, " variants"],
    flips: Int64[np.ndarray, " variants"],
    first: Int64[np.ndarray, " variants"],
    last: Int64[np.ndarray, " variants"],
    variant: Callable[[Int64[np.ndarray, " variants"]], Int64[np.ndarray, " variants"]],
) -> tuple[_Change, _Change]:
    """The last and the first changed sentence of every document variant, for the forward and the backward chains."""
    # sentence, its variant, and the flips in it; an unchanged document "changes" where each chain begins
    in_last = (first.copy(), first.copy(), np.zeros_like(flips))
    in_first = (last.copy(), last.copy(), np.zeros_like(flips))
    for column in range(parts.table.shape[1]):
        part = parts.table[block, column]
        part_flips = (flips >> parts.first_slot[part]) & ((1 << parts.width[part]) - 1)
        changed = np.flatnonzero((part >= 0) & (part_flips > 0))
        part, part_flips = part[changed], part_flips[changed]
        values = (
            parts.sentence[part],
            sentence_variants[parts.offsets[part] + part_flips],
            part_flips << parts.first_slot[part],
        )
        untouched = in_first[2][changed] == 0
        for array, value in zip(in_last, values, strict=True):
            array[changed] = value
        for array, value in zip(in_first, values, strict=True):
            array[changed[untouched]] = value[untouched]
    return (
        _Change(in_last[0] - first, in_last[1], variant(flips ^ in_last[2])),
        _Change(last - in_first[0], in_first[1], variant(flips ^ in_first[2])),
    )


def _chains(
    lengths: Int64[np.ndarray, " variants"],
    change: _Change,
    sentence_at: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[Forest, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
    """One direction's forest, and the function (variant, depth) -> node."""
    start = change.depth
    offsets, owner, depth = ranges(start, lengths - start)  # each variant's own nodes
    inputs = sentence_at(owner, depth)
    inputs[offsets[:-1]] = change.sentence_variant
    order = by_level(depth)
    rank = inverse(order)

    def node(v: Int64[np.ndarray, " n"], depth: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
        while (before := start[v] > depth).any():  # at most once per changed sentence
            v = np.where(before, change.parent[v], v)
        nodes: np.ndarray = rank[offsets[v] + depth - start[v]]
        return nodes

    parents = np.empty_like(rank)
    parents[1:] = rank[:-1]
    goes_on = np.flatnonzero(start > 0)
    parents[offsets[:-1]] = -1
    parents[offsets[goes_on]] = node(change.parent[goes_on], start[goes_on] - 1)
    return Forest(inputs[order], parents[order], np.bincount(depth)), node


# ------------------------------------------------------------------ keys and ranges


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
