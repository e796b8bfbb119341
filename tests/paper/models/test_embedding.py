"""Frozen word vectors still learn the vector of unknown words, by either path; tuned ones learn only the words seen."""

from typing import Literal

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.models.output import log_likelihood
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.models.layers import WordEmbedding
from tests.models.examples import generator_of, make_batch, make_table, paper_network

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
