"""The shared evaluation against the slow oracle, on ragged shapes (docs/paper.md 8: 4, 6, 7, 8)."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.layers.native import native_kernels
from emhrnn.models.model import log_likelihood
from emhrnn.models.segmentation import single_words, whole_sentences
from emhrnn.paper.em.blocks import Blocks, exact_blocks, local_blocks, window_blocks
from emhrnn.paper.em.likelihood import configuration_likelihood, sentence_vectors
from emhrnn.paper.em.plan import make_plan
from tests.oracles import brute_force, em_hrnn
from tests.paper.em.examples import make_batch, random_z, seeds, shapes, small_model


def by_oracle(model, batch, z, blocks):
    expected = torch.full((len(blocks), 1 << blocks.length), -torch.inf, dtype=torch.float64)
    for k, (row, document) in enumerate(zip(blocks.positions, blocks.documents, strict=True)):
        for c, (_, setting) in numbered_settings(z, row[row >= 0]):
            expected[k, c] = em_hrnn.log_p(model, batch, setting, document)
    return expected


def numbered_settings(z, positions):
    return list(zip(range(1 << len(positions)), brute_force.settings(z, positions), strict=True))


@given(shapes(3, 3, 4), seeds, st.integers(1, 4), st.booleans())
@settings(max_examples=20, deadline=None)
@torch.no_grad()
def test_equals_the_oracle(lengths, seed, length, bidirectional):
    model = small_model(seed, bidirectional_words=bidirectional)
    batch = make_batch(lengths, seed)
    z = random_z(batch, seed)
    blocks = local_blocks(batch, 3, length, generator=np.random.default_rng(seed))
    fast = configuration_likelihood(model, batch, model.words(batch), z, blocks)
    torch.testing.assert_close(fast, by_oracle(model, batch, z, blocks), rtol=0, atol=1e-10)


def by_encoding(model, batch, states, z, blocks):
    """One whole pass of the model per configuration, all documents at once: the first blocks, the second ones, ..."""
    expected = torch.full((len(blocks), 1 << blocks.length), -torch.inf, dtype=states.h1.dtype)
    turn = np.arange(len(blocks)) - np.searchsorted(blocks.documents, blocks.documents)
    for now in range(turn.max() + 1):
        chosen = np.flatnonzero(turn == now)
        for c in range(1 << blocks.length):
            setting = z.copy()
            for row in blocks.positions[chosen]:
                setting[row[row >= 0]] = [c >> j & 1 for j in range((row >= 0).sum())]
            log_p = log_likelihood(model.encode(batch, states, setting).logits, torch.from_numpy(batch.labels))
            some = chosen[c < (1 << blocks.free[chosen])]
            expected[some, c] = log_p[torch.from_numpy(blocks.documents[some])]
    return expected


@given(shapes(4, 3, 6), seeds, st.integers(1, 4))
@settings(max_examples=6, deadline=None)
@torch.no_grad()
def test_windows_equal_one_pass_per_configuration(lengths, seed, length):
    model, batch = small_model(seed), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    blocks = window_blocks(batch, length)
    fast = configuration_likelihood(model, batch, states, z, blocks)
    torch.testing.assert_close(fast, by_encoding(model, batch, states, z, blocks), rtol=0, atol=1e-10)


@given(shapes(3, 3, 3), seeds)
@settings(max_examples=10, deadline=None)
@torch.no_grad()
def test_exact_blocks_factorise_over_sentences(lengths, seed):
    model, batch = small_model(seed), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    blocks = exact_blocks(batch)
    fast = configuration_likelihood(model, batch, states, z, blocks)
    torch.testing.assert_close(fast, by_encoding(model, batch, states, z, blocks), rtol=0, atol=1e-10)


@given(lengths=shapes(4, 4, 7), seed=seeds, budget=st.sampled_from([1, 1_000, 20_000]))
@settings(max_examples=5, deadline=None)
@torch.no_grad()
def test_the_byte_budget_does_not_change_the_result(lengths, seed, budget):
    model, batch = small_model(seed), make_batch(lengths, seed)
    states, z = model.words(batch), random_z(batch, seed)
    blocks = local_blocks(batch, 4, 5, generator=np.random.default_rng(seed))
    whole = configuration_likelihood(model, batch, states, z, blocks)
    chunked = configuration_likelihood(model, batch, states, z, blocks, budget=budget)
    torch.testing.assert_close(whole, chunked, rtol=0, atol=1e-12)


@torch.no_grad()
def test_batch_order_does_not_matter():
    model = small_model()
    lengths = [[3, 1, 4], [1], [6, 2], [2, 2, 2]]
    batch = make_batch(lengths)
    z = random_z(batch)
    whole = configuration_likelihood(model, batch, model.words(batch), z, window_blocks(batch, 3))
    rows = window_blocks(batch, 3).documents
    for d in range(len(lengths)):
        words = slice(batch.word_offsets[d], batch.word_offsets[d + 1])
        alone = Batch.from_lists([em_hrnn.nested(batch, batch.words, d)], [int(batch.labels[d])])
        one = configuration_likelihood(model, alone, model.words(alone), z[words], window_blocks(alone, 3))
        torch.testing.assert_close(whole[rows == d], one, rtol=0, atol=1e-12)


@pytest.mark.parametrize("native", [False, True])
@torch.no_grad()
def test_long_and_short_sentences_in_single_precision(native):
    model = small_model(scale=1.5).float()
    batch = make_batch([[1, 300, 2], [57, 1, 1], [1], [120, 33]])
    states, z = model.words(batch), random_z(batch, rate=0.23)
    blocks = local_blocks(batch, 4, 4, generator=np.random.default_rng(1))
    with native_kernels(native):
        fast = configuration_likelihood(model, batch, states, z, blocks)
    torch.testing.assert_close(fast, by_encoding(model, batch, states, z, blocks), rtol=0, atol=1e-4)


@given(shapes(4, 4, 7), seeds)
@settings(max_examples=10, deadline=None)
@torch.no_grad()
def test_both_back_ends_agree_with_double_precision(lengths, seed):
    model, batch = small_model(seed), make_batch(lengths, seed)
    z = random_z(batch, seed)
    blocks = local_blocks(batch, 3, 4, generator=np.random.default_rng(seed))
    exact = configuration_likelihood(model, batch, model.words(batch), z, blocks)
    model.float()
    for native in (False, True):
        with native_kernels(native):
            fast = configuration_likelihood(model, batch, model.words(batch), z, blocks)
        torch.testing.assert_close(fast.double(), exact, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_several_labels_per_document():
    model, batch = small_model(), make_batch([[3, 2], [4]])
    multi = Batch(
        batch.words, batch.sentence_offsets, batch.document_offsets, batch.rows,
        labels=np.array([[0, 1, 1], [1, 0, 0]], dtype=np.float32),
    )  # fmt: skip
    z = random_z(multi)
    blocks = exact_blocks(multi)
    fast = configuration_likelihood(model, multi, model.words(multi), z, blocks)
    torch.testing.assert_close(fast, by_oracle(model, multi, z, blocks), rtol=0, atol=1e-10)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_gradients_equal_those_of_plain_passes(bidirectional):
    model, batch = small_model(bidirectional_words=bidirectional), make_batch([[3, 2], [4, 1]])
    z, blocks = random_z(batch), exact_blocks(batch)
    gradients = []
    for evaluate in (configuration_likelihood, by_encoding):
        model.zero_grad()
        log_p = evaluate(model, batch, model.words(batch), z, blocks)
        log_p[~torch.isneginf(log_p)].square().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for fast, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-10)


def test_gradients_do_not_depend_on_the_budget():
    model, batch = small_model(), make_batch([[3, 2], [4, 1], [5]])
    z, blocks = random_z(batch), window_blocks(batch, 3)
    gradients = []
    for budget in (1 << 30, 1):
        model.zero_grad()
        configuration_likelihood(model, batch, model.words(batch), z, blocks, budget=budget).exp().sum().backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    for whole, chunked in zip(*gradients, strict=True):
        torch.testing.assert_close(chunked, whole, rtol=1e-10, atol=1e-12)


def test_documents_without_labels_are_refused():
    model, batch = small_model(), make_batch([[3, 2]])
    bare = Batch(batch.words, batch.sentence_offsets, batch.document_offsets, batch.rows)
    with pytest.raises(DataError, match="label"):
        configuration_likelihood(model, bare, model.words(bare), random_z(bare), exact_blocks(bare))


def test_no_blocks_give_no_rows():
    model, batch = small_model(), make_batch([[3, 2]])
    none = Blocks(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert configuration_likelihood(model, batch, model.words(batch), random_z(batch), none).shape == (0, 4)


@given(st.integers(1, 6), seeds)
@settings(max_examples=10, deadline=None)
@torch.no_grad()
def test_ragged_token_synchronous_segment_table_and_trie_agree(words, seed):
    model, batch = small_model(seed), make_batch([[words]], seed)
    states, z = model.words(batch), random_z(batch, seed)
    blocks = exact_blocks(batch)
    plan = make_plan(batch, z, blocks)
    trie, documents = sentence_vectors(model, states, plan.sentences), plan.documents
    table = em_hrnn.segment_table(states.h1, states.scores)
    h1 = list(states.h1)
    for c, (_, setting) in enumerate(brute_force.settings(z, brute_force.free_positions(batch, 0))):
        ragged = em_hrnn.sentence_vector(
            model, [em_hrnn.pool(model.word_attention, phrase) for phrase in em_hrnn.phrases(h1, setting)]
        )
        ends = np.flatnonzero(setting)
        q = [table[a, b] for a, b in zip([0, *(ends[:-1] + 1)], ends, strict=True)]
        by_table = em_hrnn.sentence_vector(model, q)
        variant = documents.forward.inputs[documents.forward_nodes[documents.offsets[documents.configurations[0, c]]]]
        for other in (
            em_hrnn.token_synchronous(model, states.h1, states.scores, setting),
            by_table,
            trie[variant],
        ):
            torch.testing.assert_close(other, ragged, rtol=0, atol=1e-9)


@torch.no_grad()
def test_every_trie_node_is_there_once():
    """All segmentations of a T-word sentence: 2^T - 1 nodes and T (T + 1) / 2 segments (docs/paper.md 6.2)."""
    batch = make_batch([[7]])
    blocks = exact_blocks(batch)
    plan = make_plan(batch, random_z(batch), blocks).sentences
    assert len(plan.phrases.inputs) == 2**7 - 1
    assert len(plan.segment_begin) == 28
    assert len(plan.path_offsets) - 1 == 64


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
