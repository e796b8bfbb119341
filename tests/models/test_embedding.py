"""Frozen word vectors still learn the vector of unknown words, by either path; tuned ones learn only the words seen."""

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.embedding import WordEmbedding
from emhrnn.models.output import log_likelihood

BATCH = Batch.from_lists([[[3, 0, 2], [0]], [[1, 0]]], [0, 1])


def make(tuned: bool, bidirectional: bool) -> EMHRNN:
    generator = torch.Generator().manual_seed(1)
    table = torch.randn(5, 4, generator=generator)
    return EMHRNN(
        table=table,
        classes=2,
        generator=generator,
        tune_embedding=tuned,
        word_size=3,
        phrase_size=3,
        sentence_size=3,
        attention_size=3,
        bidirectional_words=bidirectional,
    )


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
