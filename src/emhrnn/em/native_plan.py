"""The same plan from C++ (plan.cpp), ten times faster: compiled on first use, like the layers' kernels, and used
whenever those are. The caller falls back to NumPy when this gives None."""

import ctypes
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks
from emhrnn.em.document_plan import DocumentPlan
from emhrnn.em.sentence_plan import Forest, SentencePlan, find_parts
from emhrnn.layers.native import kernels
from emhrnn.layers.native.build import try_numeric_library

SOURCE = Path(__file__).with_name("plan.cpp")
ARRAYS = 20  # of a plan


def native_plan(
    batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks
) -> tuple[SentencePlan, DocumentPlan] | None:
    library = _library() if kernels() is not None else None
    if library is None:
        return None
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
    return sentences, DocumentPlan(of, forward, backward, offsets, forward_nodes, backward_nodes, configurations)


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
    library = try_numeric_library(SOURCE, instead="the E-step is planned in NumPy")
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
