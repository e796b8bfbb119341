import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from emhrnn.layers.packing import pack
from tests.layers.shapes import lengths, offsets_of


def test_the_picture_of_the_docstring() -> None:
    packing = pack(np.array([0, 2, 5, 6]))
    assert packing.sequences.tolist() == [1, 0, 2]
    assert packing.batch_sizes.tolist() == [3, 2, 1]
    assert packing.order.tolist() == [2, 0, 5, 3, 1, 4]
    assert packing.previous.tolist() == [0, 1, 3]


@given(lengths=lengths, reverse=st.booleans())
def test_every_row_follows_its_sequence(lengths: list[int], reverse: bool) -> None:
    offsets = offsets_of(lengths)
    packing = pack(offsets, reverse=reverse)
    assert torch.equal(packing.order[packing.inverse], torch.arange(offsets[-1]))
    assert int(packing.batch_sizes.sum()) == offsets[-1]
    first = len(lengths)
    step = -1 if reverse else 1
    assert (packing.order[first:] == packing.order[packing.previous] + step).all()
    starts = offsets[1:] - 1 if reverse else offsets[:-1]
    assert sorted(packing.order[:first].tolist()) == sorted(starts.tolist())


def test_no_sequences() -> None:
    packing = pack(np.array([0]))
    assert len(packing.order) == len(packing.batch_sizes) == len(packing.previous) == 0
