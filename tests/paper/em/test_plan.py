"""The two planners, Python and C++, make the same plan up to numbering."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.layers.native import kernels, native_kernels
from emhrnn.paper.em.blocks import Blocks, exact_blocks, local_blocks
from emhrnn.paper.em.plan import chunks, make_plan
from tests.paper.em.examples import make_batch, random_z, seeds, shapes


def unfolded(inputs, parents):
    """Each node as the tuple of inputs from its root, so that numbering does not matter."""
    paths = []
    for i, parent in zip(inputs, parents, strict=True):
        paths.append((*(paths[parent] if parent >= 0 else ()), i))
    return paths


def described(plan):
    """Everything a plan says, by content instead of number."""
    sentences, documents = plan.sentences, plan.documents
    segments = list(zip(sentences.segment_begin.tolist(), sentences.segment_end.tolist(), strict=True))
    nodes = unfolded([segments[i] for i in sentences.phrases.inputs], sentences.phrases.parents)
    variants = [
        tuple(nodes[n] for n in sentences.path_nodes[begin:end])
        for begin, end in zip(sentences.path_offsets, sentences.path_offsets[1:], strict=False)
    ]
    forward = unfolded([variants[i] for i in documents.forward.inputs], documents.forward.parents)
    backward = unfolded([variants[i] for i in documents.backward.inputs], documents.backward.parents)
    forward_of, backward_of = documents.forward_nodes, documents.backward_nodes
    pairs = [
        tuple((forward[f], backward[b]) for f, b in zip(forward_of[i:j], backward_of[i:j], strict=True))
        for i, j in zip(documents.offsets, documents.offsets[1:], strict=False)
    ]
    return {
        "segments": sorted(segments),
        "nodes": sorted(nodes),
        "sentences": sorted(variants),
        "forward": sorted(forward),
        "backward": sorted(backward),
        "configurations": [[pairs[v] if v >= 0 else None for v in row] for row in documents.configurations],
        "documents": sorted(documents.documents.tolist()),
        "levels": [f.level_sizes.tolist() for f in (sentences.phrases, documents.forward, documents.backward)],
    }


def both(make, *arguments):
    with native_kernels(False):
        plain = make(*arguments)
    return plain, make(*arguments)


@given(shapes(4, 4, 6), seeds, st.integers(1, 5))
@settings(max_examples=25, deadline=None)
def test_both_planners_agree(lengths, seed, length):
    batch = make_batch(lengths, seed)
    blocks = local_blocks(batch, 4, length, generator=np.random.default_rng(seed))
    plain, native = both(make_plan, batch, random_z(batch, seed), blocks)
    assert described(plain) == described(native)


def test_blocks_may_have_gaps():
    batch = make_batch([[6, 5, 4]])
    blocks = Blocks(np.array([[0, 4, 8, 12], [1, 3, 11, -1]]), np.array([0, 0]))
    plain, native = both(make_plan, batch, random_z(batch), blocks)
    assert described(plain) == described(native)


@pytest.mark.skipif(kernels() is None, reason="no C++ compiler")
def test_siblings_are_neighbours():
    batch = make_batch([[6, 5, 4]])
    plan = make_plan(batch, random_z(batch), exact_blocks(batch))
    for forest in (plan.sentences.phrases, plan.documents.forward, plan.documents.backward):
        assert (np.diff(forest.parents[forest.level_sizes[0] :]) >= 0).all()


def test_chunks_cover_the_blocks_in_order():
    batch = make_batch([[9, 9], [5], [7, 7, 7]])
    blocks = local_blocks(batch, 5, 3, generator=np.random.default_rng(0))
    parts = list(chunks(batch, blocks, budget=10_000, sentence_bytes=100, phrase_bytes=100))
    assert len(parts) > 2
    positions = [
        np.where(part.blocks.positions >= 0, part.blocks.positions + part.word_range.start, -1) for part in parts
    ]
    assert (np.concatenate(positions) == blocks.positions).all()
    documents = [part.blocks.documents + part.document_range.start for part in parts]
    assert (np.concatenate(documents) == blocks.documents).all()
