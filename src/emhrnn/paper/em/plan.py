r"""The integer plan of an E-step: everything that depends on z and the blocks only, no floats.

    blocks -> flips of z -> distinct sentences -> trie of phrases
                        \-> distinct documents -> sentence chains

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

`chunks` cuts the blocks so that one plan and its states fit a byte budget; the result does not depend on the cuts. The
plan is made in C++ (plan.cpp, compiled on first use, like the layers' kernels), or slowly by `plain_plan`.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from emhrnn.compiler import try_library
from emhrnn.corpus.batch import Batch, offsets_of
from emhrnn.layers.native import kernels
from emhrnn.paper.em.blocks import Blocks
from emhrnn.shapes import Bool, Int64

WORDS_PER_PHRASE = 4  # a guess for the byte budget
SOURCE = Path(__file__).with_name("plan.cpp")
ARRAYS = 18  # of a plan


@dataclass(frozen=True, eq=False)
class Forest:
    """Nodes of many trees, level by level: what each reads, and whose state it continues from (-1: a fresh one)."""

    inputs: Int64[np.ndarray, " nodes"]
    parents: Int64[np.ndarray, " nodes"]
    level_sizes: Int64[np.ndarray, " levels"]


@dataclass(frozen=True, eq=False)
class SentencePlan:
    """Distinct sentences: first all of them as z has them, then the other variants."""

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


def make_plan(batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks) -> EStepPlan:
    """The plan of all configurations of the blocks, the rest as in z; in C++ where that is at hand."""
    library = _library() if kernels() is not None else None
    return plain_plan(batch, z, blocks) if library is None else _native_plan(library, batch, z, blocks)


def plain_plan(batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks) -> EStepPlan:
    """The same, one configuration after the other."""
    segments: dict[tuple[int, int], int] = {}
    sentences: dict[tuple[int, ...], int] = {}  # number of a sentence and its phrase ends -> variant
    documents: dict[tuple[int, ...], int] = {}  # variants of all its sentences -> variant
    phrases, forward, backward = _Trie(), _Trie(), _Trie()
    begins = batch.sentence_offsets.tolist()

    def variant(sentence: int, changed: Bool[np.ndarray, " words"]) -> int:
        begin, end = begins[sentence], begins[sentence + 1]
        ends = (np.flatnonzero(changed[begin:end]) + begin + 1).tolist()
        if (sentence, *ends) not in sentences:
            bounds = pairwise([begin, *ends])
            phrases.add([segments.setdefault(segment, len(segments)) for segment in bounds])
        return sentences.setdefault((sentence, *ends), len(sentences))

    unchanged = [variant(sentence, z) for sentence in range(batch.n_sentences)]
    configurations = np.full((len(blocks), 1 << blocks.length), -1)
    of_document = []
    for block, (row, document) in enumerate(zip(blocks.positions, blocks.documents.tolist(), strict=True)):
        positions = row[row >= 0]
        touched = set(batch.sentence_of_word[positions].tolist())
        inside = range(*batch.document_offsets[document : document + 2].tolist())
        for number in range(1 << len(positions)):
            changed = z.copy()
            changed[positions] = (number >> np.arange(len(positions))) & 1
            found = tuple(variant(i, changed) if i in touched else unchanged[i] for i in inside)
            if found not in documents:
                of_document.append(document)
                forward.add(found)
                backward.add(found[::-1])
            configurations[block, number] = documents.setdefault(found, len(documents))
    begin, end = np.array(list(segments), dtype=np.int64).reshape(-1, 2).T
    of_sentences = SentencePlan(begin, end, *phrases.forest())
    there, offsets, nodes = forward.forest()
    back, _, from_end = backward.forest()
    lengths = np.diff(offsets)
    last_first = np.repeat(offsets[:-1] + offsets[1:] - 1, lengths) - np.arange(offsets[-1])
    of_documents = DocumentPlan(
        np.array(of_document), there, back, offsets, nodes, from_end[last_first], configurations
    )
    return EStepPlan(of_sentences, of_documents)


class _Trie:
    """Paths with common beginnings, each node once."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[int, int], int] = {}  # parent, input -> node
        self.levels: list[int] = []
        self.paths: list[list[int]] = []

    def add(self, inputs: Sequence[int]) -> None:
        path, parent = [], -1
        for level, read in enumerate(inputs):
            if (parent, read) not in self.nodes:
                self.levels.append(level)
            parent = self.nodes.setdefault((parent, read), len(self.nodes))
            path.append(parent)
        self.paths.append(path)

    def forest(self) -> tuple[Forest, Int64[np.ndarray, " paths_plus_1"], Int64[np.ndarray, " steps"]]:
        """Its nodes level by level, and the paths: offsets and nodes."""
        levels = np.array(self.levels)
        order = np.argsort(levels, kind="stable")
        rank = np.append(np.argsort(order, kind="stable"), -1)  # of no node, at -1: -1
        parents, inputs = np.array(list(self.nodes))[order].T
        steps = rank[np.concatenate(self.paths)]
        return (
            Forest(inputs.copy(), rank[parents], np.bincount(levels)),
            offsets_of(np.array([*map(len, self.paths)])),
            steps,
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """A part is the run of a block's slots that lies in one sentence.

    `flips` of a part count 0 .. 2^width - 1: bit j flips its j-th slot. Row `offsets[part] + flips` stands for them.
    """

    block: Int64[np.ndarray, " parts"]
    sentence: Int64[np.ndarray, " parts"]
    first_slot: Int64[np.ndarray, " parts"]
    width: Int64[np.ndarray, " parts"]
    offsets: Int64[np.ndarray, " parts_plus_1"]


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
    return Parts(block, sentence[block, first_slot], first_slot, width, offsets_of(1 << width))


@dataclass(frozen=True, eq=False)
class BlockChunk:
    """Some consecutive blocks, with the documents they are in; positions count from the chunk's first word."""

    batch: Batch
    blocks: Blocks
    document_range: slice  # of all documents
    word_range: slice  # of all words


def chunks(
    batch: Batch, blocks: Blocks, *, budget: int, sentence_bytes: int, phrase_bytes: int
) -> Iterator[BlockChunk]:
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


def _chunk(batch: Batch, blocks: Blocks, begin: int, end: int) -> BlockChunk:
    chosen = blocks.part(begin, end)
    first, last = int(chosen.documents[0]), int(chosen.documents[-1]) + 1
    words = slice(int(batch.word_offsets[first]), int(batch.word_offsets[last]))
    positions = np.where(chosen.positions >= 0, chosen.positions - words.start, -1)
    return BlockChunk(batch.part(first, last), Blocks(positions, chosen.documents - first), slice(first, last), words)


# ------------------------------------------------------------------ in C++


def _native_plan(library: ctypes.CDLL, batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks) -> EStepPlan:
    parts = find_parts(batch, blocks)
    arrays = [
        batch.sentence_offsets, batch.document_offsets, z, blocks.positions, blocks.documents,
        parts.block, parts.sentence, parts.first_slot, parts.width, parts.offsets,
    ]  # fmt: skip
    arrays = [np.ascontiguousarray(array) for array in arrays]  # kept until the call returns
    sentence_offsets, document_offsets, z_bytes, positions, documents, *of_parts = map(_pointer, arrays)
    plan = ctypes.c_void_p(
        library.plan_make(
            *_integers(batch.n_words, batch.n_sentences), sentence_offsets, document_offsets, z_bytes,
            *_integers(len(blocks), blocks.length), positions, documents,
            *_integers(len(parts.block)), *of_parts,
        )
    )  # fmt: skip
    try:
        made = iter([_copied(library, plan, number) for number in range(ARRAYS)])
    finally:
        library.plan_free(plan)
    begin, end, path_offsets, path_nodes = (next(made) for _ in range(4))
    phrases = Forest(next(made), next(made), next(made))
    sentences = SentencePlan(begin, end, phrases, path_offsets, path_nodes)
    of, offsets, forward_nodes, backward_nodes, configurations = (next(made) for _ in range(5))
    forward = Forest(next(made), next(made), next(made))
    backward = Forest(next(made), next(made), next(made))
    configurations = configurations.reshape(len(blocks), 1 << blocks.length)
    made_documents = DocumentPlan(of, forward, backward, offsets, forward_nodes, backward_nodes, configurations)
    return EStepPlan(sentences, made_documents)


def _copied(library: ctypes.CDLL, plan: ctypes.c_void_p, number: int) -> Int64[np.ndarray, " n"]:
    """An array of a plan, in the order of plan.cpp."""
    size = ctypes.c_int64()
    data = library.plan_array(plan, ctypes.c_int64(number), ctypes.byref(size))
    return np.ctypeslib.as_array(data, (size.value,)).copy() if size.value else np.zeros(0, np.int64)


@cache
def _library() -> ctypes.CDLL | None:
    library = try_library(SOURCE, numeric=True, instead="the E-step is planned in Python")
    if library is None:
        return None
    library.plan_make.restype = ctypes.c_void_p
    library.plan_free.restype = None
    library.plan_array.restype = ctypes.POINTER(ctypes.c_int64)
    return library


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _integers(*values: int) -> tuple[ctypes.c_int64, ...]:
    return tuple(map(ctypes.c_int64, values))
