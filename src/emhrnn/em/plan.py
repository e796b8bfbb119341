"""The integer plan of an E-step: everything that depends on z and the blocks only, no floats.

    blocks -> flips of z -> distinct sentences -> trie of phrases        (sentence_plan)
                        \\-> distinct documents -> sentence chains        (document_plan)

`chunks` cuts the blocks so that one plan and its states fit a byte budget; the result does not depend on the cuts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks
from emhrnn.em.document_plan import DocumentPlan, plan_documents
from emhrnn.em.native_plan import native_plan
from emhrnn.em.sentence_plan import SentencePlan, find_parts, flip_keys, plan_sentences

WORDS_PER_PHRASE = 4  # a guess for the byte budget


@dataclass(frozen=True, eq=False)
class Plan:
    sentences: SentencePlan
    documents: DocumentPlan


def make_plan(batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks) -> Plan:
    if made := native_plan(batch, z, blocks):
        return Plan(*made)
    keys = flip_keys(blocks, batch.n_words)
    sentences = plan_sentences(batch, z, blocks, keys)
    return Plan(sentences, plan_documents(batch, z, blocks, keys, sentences))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some consecutive blocks, with the documents they are in; positions count from the chunk's first word."""

    batch: Batch
    blocks: Blocks
    document_range: slice  # of all documents
    word_range: slice  # of all words


def chunks(batch: Batch, blocks: Blocks, *, budget: int, sentence_bytes: int, phrase_bytes: int) -> Iterator[Chunk]:
    """Runs of blocks whose states need about `budget` bytes, and at least one block each: a configuration has the
    sentences of its document, and each sentence has phrases once for every choice within it."""
    sentences = np.diff(batch.document_offsets)[blocks.documents]
    parts = find_parts(batch, blocks)
    of_part = (2 + batch.sentence_lengths[parts.sentence] // WORDS_PER_PHRASE) << parts.width
    phrases = np.bincount(parts.block, of_part, minlength=len(blocks)).astype(np.int64)
    cost = (sentences << blocks.free) * sentence_bytes + phrases * phrase_bytes
    run = (np.cumsum(cost) - cost) // budget
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    for begin, end in pairwise([*starts.tolist(), len(blocks)]):
        yield _chunk(batch, blocks, begin, end)


def _chunk(batch: Batch, blocks: Blocks, begin: int, end: int) -> Chunk:
    chosen = blocks.part(begin, end)
    first, last = int(chosen.documents[0]), int(chosen.documents[-1]) + 1
    words = slice(int(batch.word_offsets[first]), int(batch.word_offsets[last]))
    positions = np.where(chosen.positions >= 0, chosen.positions - words.start, -1)
    return Chunk(batch.part(first, last), Blocks(positions, chosen.documents - first), slice(first, last), words)
