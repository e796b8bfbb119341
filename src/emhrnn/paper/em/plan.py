r"""The integer plan of an E-step: everything that depends on z and the blocks only, no floats.

    blocks -> flips of z -> distinct sentences -> trie of phrases
                        \-> distinct documents -> sentence chains

`chunks` cuts the blocks so that one plan and its states fit a byte budget; the result does not depend on the cuts. The
plan is made in C++ (plan.cpp, compiled on first use, like the layers' kernels), or ten times slower by numpy_plan.py,
which says what a plan is.
"""

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.compiler import try_library
from emhrnn.corpus.batch import Batch
from emhrnn.layers.native import kernels
from emhrnn.paper.em.blocks import Blocks
from emhrnn.paper.em.numpy_plan import DocumentPlan, EStepPlan, Forest, SentencePlan, find_parts, numpy_plan

WORDS_PER_PHRASE = 4  # a guess for the byte budget
SOURCE = Path(__file__).with_name("plan.cpp")
ARRAYS = 20  # of a plan


def make_plan(batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks) -> EStepPlan:
    """The plan of all configurations of the blocks, the rest as in z; in C++ where that is at hand."""
    library = _library() if kernels() is not None else None
    return numpy_plan(batch, z, blocks) if library is None else _native_plan(library, batch, z, blocks)


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
    plan = _Plan(
        library,
        library.plan_make(
            *_integers(batch.n_words, batch.n_sentences), sentence_offsets, document_offsets, z_bytes,
            *_integers(len(blocks), blocks.length), positions, documents,
            *_integers(len(parts.block)), *of_parts,
        ),
    )  # fmt: skip
    made = plan.arrays()
    of, variants, begin, end, path_offsets, path_nodes = (next(made) for _ in range(6))
    phrases = Forest(next(made), next(made), next(made))
    sentences = SentencePlan(of, parts, variants, begin, end, phrases, path_offsets, path_nodes)
    of, offsets, forward_nodes, backward_nodes, configurations = (next(made) for _ in range(5))
    forward = Forest(next(made), next(made), next(made))
    backward = Forest(next(made), next(made), next(made))
    configurations = configurations.reshape(len(blocks), 1 << blocks.length)
    made_documents = DocumentPlan(of, forward, backward, offsets, forward_nodes, backward_nodes, configurations)
    return EStepPlan(sentences, made_documents)


class _Plan:
    """A plan in the library's memory, which lives as long as an array of it."""

    def __init__(self, library: ctypes.CDLL, address: int) -> None:
        self._library, self._address = library, ctypes.c_void_p(address)

    def __del__(self) -> None:
        self._library.plan_free(self._address)

    def arrays(self) -> Iterator[Int64[np.ndarray, " n"]]:
        """Views, in the order of plan.cpp."""
        size = ctypes.c_int64()
        for number in range(ARRAYS):
            data = self._library.plan_array(self._address, ctypes.c_int64(number), ctypes.byref(size))
            yield np.asarray(_Memory(self, data, size.value)) if size.value else np.zeros(0, np.int64)


class _Memory:
    """An array as NumPy takes it over; it holds on to its owner."""

    def __init__(self, owner: _Plan, address: int, size: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": "<i8" if sys.byteorder == "little" else ">i8",
            "data": (address, False),
            "version": 3,
        }


@cache
def _library() -> ctypes.CDLL | None:
    library = try_library(SOURCE, numeric=True, instead="the E-step is planned in NumPy")
    if library is None:
        return None
    library.plan_make.restype = ctypes.c_void_p
    library.plan_free.restype = None
    library.plan_array.restype = ctypes.c_void_p
    return library


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _integers(*values: int) -> tuple[ctypes.c_int64, ...]:
    return tuple(map(ctypes.c_int64, values))
