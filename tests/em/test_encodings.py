"""Three ways to write a sentence's encoding agree, and the limits of z are known models (SPEC section 8: 7 and 10)."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.em.blocks import exact_blocks
from emhrnn.em.likelihood import sentence_vectors
from emhrnn.em.numpy_plan import flip_keys, plan_sentences
from emhrnn.models.segmentation import single_words, whole_sentences
from tests.em.examples import make_batch, random_z, seeds, small_model
from tests.oracles import brute_force, em_hrnn


@given(st.integers(1, 6), seeds)
@settings(max_examples=10, deadline=None)
@torch.no_grad()
def test_ragged_token_synchronous_segment_table_and_trie_agree(words, seed):
    model, batch = small_model(seed), make_batch([[words]], seed)
    states, z = model.words(batch), random_z(batch, seed)
    blocks = exact_blocks(batch)
    plan = plan_sentences(batch, z, blocks, flip_keys(blocks, batch.n_words))
    trie = sentence_vectors(model, states, plan)
    table = em_hrnn.segment_table(states.h1, states.scores)
    h1 = list(states.h1)
    start = int(np.packbits(z[:-1], bitorder="little")[0]) if words > 1 else 0  # z itself, as a configuration
    for c, (_, setting) in enumerate(brute_force.settings(z, brute_force.free_positions(batch, 0))):
        ragged = em_hrnn.sentence_vector(
            model, [em_hrnn.pool(model.word_attention, phrase) for phrase in em_hrnn.phrases(h1, setting)]
        )
        ends = np.flatnonzero(setting)
        q = [table[a, b] for a, b in zip([0, *(ends[:-1] + 1)], ends, strict=True)]
        by_table = em_hrnn.sentence_vector(model, q)
        variant = plan.variants[c ^ start] if words > 1 else 0
        for other in (
            em_hrnn.token_synchronous(model, states.h1, states.scores, setting),
            by_table,
            trie[variant],
        ):
            torch.testing.assert_close(other, ragged, rtol=0, atol=1e-9)


@torch.no_grad()
def test_every_trie_node_is_there_once():
    """All segmentations of a T-word sentence: 2^T - 1 nodes and T (T + 1) / 2 segments (SPEC E2)."""
    batch = make_batch([[7]])
    blocks = exact_blocks(batch)
    plan = plan_sentences(batch, random_z(batch), blocks, flip_keys(blocks, batch.n_words))
    assert len(plan.phrases.inputs) == 2**7 - 1
    assert len(plan.segment_begin) == 28
    assert len(plan.sentences) == 64


@torch.no_grad()
def test_without_boundaries_it_is_a_hierarchical_attention_network():
    """z = 0: a phrase is a sentence; phrase attention has nothing to choose from."""
    model, batch = small_model(), make_batch([[3, 5, 1]])
    words = em_hrnn.nested(batch, batch.words, 0)
    s = []
    for sentence in words:
        q = em_hrnn.pool(model.word_attention, em_hrnn.word_states(model, sentence))
        s.append(em_hrnn.recurrence(model.phrase_layer, [q])[0])
    expected = _document(model, s)
    logits = model.encode(batch, model.words(batch), whole_sentences(batch)).logits[0]
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-10)


@torch.no_grad()
def test_with_every_boundary_it_is_two_stacked_layers():
    """z = 1: a phrase is a word; word attention has nothing to choose from."""
    model, batch = small_model(), make_batch([[3, 5, 1]])
    s = []
    for sentence in em_hrnn.nested(batch, batch.words, 0):
        h2 = em_hrnn.recurrence(model.phrase_layer, em_hrnn.word_states(model, sentence))
        s.append(em_hrnn.pool(model.phrase_attention, h2))
    logits = model.encode(batch, model.words(batch), single_words(batch)).logits[0]
    torch.testing.assert_close(logits, _document(model, s), rtol=0, atol=1e-10)


def _document(model, s):
    forward = em_hrnn.recurrence(model.sentence_forward, s)
    backward = em_hrnn.recurrence(model.sentence_backward, s[::-1])[::-1]
    h3 = [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
    return model.output(em_hrnn.pool(model.sentence_attention, h3))
