"""Word vectors, frozen and tuned; attention over segments, against its oracle."""

import shutil
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.layers.native import kernels, native_kernels
from emhrnn.models.model import log_likelihood
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.layers import AttentionPool, WordEmbedding, attend, attend_path_pairs
from tests.layers.shapes import hidden_sizes, lengths, offsets_of, seeds
from tests.models.examples import generator_of, make_batch, make_table, paper_network
from tests.oracles import attention as oracle
from tests.oracles.em_hrnn import pool

BATCH = Batch.from_lists([[[3, 0, 2], [0]], [[1, 0]]], [0, 1])


def make(tuned: bool, bidirectional: bool) -> EMHRNN:
    generator = torch.Generator().manual_seed(1)
    table = torch.randn(5, 4, generator=generator)
    sizes = {"word_size": 3, "phrase_size": 3, "sentence_size": 3, "attention_size": 3}
    config = paper_network(tune_embedding=tuned, bidirectional_words=bidirectional, **sizes)
    return EMHRNN(config, table=table, classes=2, generator=generator)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_confined_gradient_equals_the_plain_one(bidirectional: bool) -> None:
    model = make(tuned=False, bidirectional=bidirectional)

    def gradients(through: str) -> dict[str, torch.Tensor]:
        model.zero_grad()
        generator = torch.Generator() if through == "plain" else None
        model.dropout = 1e-12 if through == "plain" else 0.0  # takes the path with gradients for all of x
        states = model.words(BATCH, generator)
        output = model.encode(BATCH, states, np.ones(BATCH.n_words, dtype=bool))
        log_likelihood(output.logits, torch.tensor([0, 1])).sum().backward()
        return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    plain, confined = gradients("plain"), gradients("confined")
    assert plain["embedding.unknown"].abs().sum() > 0
    assert plain.keys() == confined.keys()
    for name in plain:
        assert torch.allclose(plain[name], confined[name], atol=1e-6), name


def test_tuned_vectors_have_a_sparse_gradient() -> None:
    embedding = WordEmbedding(torch.randn(1000, 4), tuned=True)
    embedding(torch.tensor([5, 7, 5])).sum().backward()
    assert embedding.table.grad is not None
    assert embedding.table.grad.is_sparse
    assert embedding.table.grad.coalesce().indices().tolist() == [[5, 7]]


def test_vectors_are_what_forward_gives() -> None:
    for tuned in (False, True):
        embedding = WordEmbedding(torch.randn(6, 4), tuned=tuned)
        with torch.no_grad():
            assert torch.equal(embedding(torch.arange(6)), embedding.vectors())


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize("tuned", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_words_that_come_again_are_projected_once(
    cell: Literal["lstm", "gru"], tuned: bool, bidirectional: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = EMHRNN(
        paper_network(tune_embedding=tuned, word_size=4, bidirectional_words=bidirectional, cell=cell),
        table=make_table(), classes=3, generator=generator_of(1),
    )  # fmt: skip
    batch, projected = make_batch([[9, 30], [40]], seed=3), []
    monkeypatch.setattr(model, "project", lambda x, of=model.project: projected.append(len(x)) or of(x))
    expected = model.words(batch)
    assert not projected  # with gradients, all words are
    with torch.no_grad():
        torch.testing.assert_close(model.words(batch).h1, expected.h1)
        assert projected == [len(np.unique(batch.words))]
        model.words(make_batch([[2]], seed=3))  # no word comes again
    assert len(projected) == 1


@settings(max_examples=40, deadline=None)
@given(lengths=lengths, hidden=hidden_sizes, seed=seeds)
def test_equals_one_softmax_per_segment(lengths, hidden, seed) -> None:
    generator = generator_of(seed)
    offsets = torch.from_numpy(offsets_of(lengths))
    n = int(offsets[-1])
    h = torch.randn(n, hidden, generator=generator, requires_grad=True)
    scores = (5 * torch.randn(n, generator=generator)).requires_grad_()
    seen = torch.randn(len(lengths), hidden, generator=generator), torch.randn(n, generator=generator)

    fast = attend(h, scores, offsets)
    slow = oracle.attend(h, scores, offsets.tolist())
    gradients = [
        torch.autograd.grad((pooled * seen[0]).sum() + (weights * seen[1]).sum(), [h, scores])
        for pooled, weights in (fast, slow)
    ]
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(*gradients, atol=2e-5, rtol=1e-4)


def test_gradcheck() -> None:
    offsets = torch.tensor([0, 3, 3, 4, 9])  # one segment is empty
    h = torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    scores = torch.randn(9, dtype=torch.float64, requires_grad=True)

    def both(h: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        return attend(h, scores, offsets)

    assert torch.autograd.gradcheck(both, (h, scores))
    assert torch.equal(both(h, scores)[0][1], torch.zeros(3, dtype=torch.float64))


def test_each_segment_has_its_own_maximum() -> None:
    """With one maximum for the whole batch, the second segment's exponentials would all be zero."""
    scores = torch.tensor([1000.0, 1001.0, -1000.0, -1000.0])
    pooled, weights = attend(torch.eye(4), scores, torch.tensor([0, 2, 4]))
    torch.testing.assert_close(weights, torch.tensor([0.26894, 0.73106, 0.5, 0.5]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(pooled.sum(1), torch.ones(2))


def test_the_pool_scores_with_its_context() -> None:
    pool = AttentionPool(4, 3, generator=generator_of(0))
    h = torch.randn(6, 4, generator=generator_of(1))
    offsets = torch.tensor([0, 2, 6])
    scores = torch.stack([pool.context @ torch.tanh(pool.weight @ row + pool.bias) for row in h])
    torch.testing.assert_close(pool.scores(h), scores)
    torch.testing.assert_close(pool(h, offsets), oracle.attend(h, scores, offsets.tolist()))


HAS_COMPILER = any(map(shutil.which, ("c++", "g++", "clang++")))
NEEDS_COMPILER = pytest.mark.skipif(not HAS_COMPILER, reason="no C++ compiler")


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=NEEDS_COMPILER)])
@settings(max_examples=20, deadline=None)
@given(hidden=hidden_sizes, seed=seeds)
def test_equals_the_oracle_with_and_without_gradients(native, hidden, seed) -> None:
    generator = generator_of(seed)
    attention = AttentionPool(hidden + 4, 3, generator=generator)
    h, x = torch.randn(6, hidden, generator=generator), torch.randn(5, 4, generator=generator)
    inputs = torch.randint(5, (6,), generator=generator)
    lengths = torch.randint(1, 5, (3,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
    index = torch.randint(6, (int(offsets[-1]),), generator=generator)
    paths = [index[a:b].tolist() for a, b in pairwise(offsets)]
    expected = torch.stack([pool(attention, [torch.cat([h[i], x[inputs[i]]]) for i in path]) for path in paths])
    with native_kernels(native):
        assert (kernels() is not None) == native
        differentiable = attend_path_pairs(attention, h, x, inputs, offsets, index)
        with torch.no_grad():
            plain = attend_path_pairs(attention, h, x, inputs, offsets, index)
    assert differentiable.requires_grad
    torch.testing.assert_close(differentiable, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(plain, expected.detach(), rtol=1e-4, atol=1e-5)
