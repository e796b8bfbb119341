r"""Which documents the configurations make, each once, and the chains of their sentence BiLSTM.

A *document variant* is a document with some sentences replaced by variants. Up to its last changed sentence its
forward states are those of the variant without that change (its parent); from there on it has a chain of its own.
Backward, the same with the first changed sentence.

    document        s0   s1   s2   s3   s4
    as z has it     F0 - F1 - F2 - F3 - F4
    s2 changed             \_ F2'- F3'- F4'         own chain from s2
    s2, s3 changed                \_F3"- F4"        own chain from s3, parent: the variant with only s2 changed

`depth` counts sentences in reading direction (from the end when reading backward), so that one function serves both.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.em import configurations
from emhrnn.em.blocks import Blocks
from emhrnn.em.keys import by_level, distinct, inverse, position_keys, ranges
from emhrnn.em.sentence_plan import Forest, Parts, SentencePlan


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
class Change:
    """The last (or first) sentence that a document variant changes; depth 0 and the sentence itself if none."""

    depth: Int64[np.ndarray, " variants"]
    sentence_variant: Int64[np.ndarray, " variants"]
    parent: Int64[np.ndarray, " variants"]  # the document variant without this change; of an unchanged one: itself


def plan_documents(
    batch: Batch,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    flip_keys: Int64[np.ndarray, "blocks flips"],
    sentences: SentencePlan,
) -> DocumentPlan:
    valid = configurations.valid(blocks)
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

    flips_of_configuration = np.arange(1 << blocks.length) ^ configurations.current(blocks, z)[:, None]
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
) -> tuple[Change, Change]:
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
        Change(in_last[0] - first, in_last[1], variant(flips ^ in_last[2])),
        Change(last - in_first[0], in_first[1], variant(flips ^ in_first[2])),
    )


def _chains(
    lengths: Int64[np.ndarray, " variants"],
    change: Change,
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
