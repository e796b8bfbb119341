"""Scores of words and pairs, against Python loops over them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.paper.models import ngrams
from emhrnn.paper.models.ngrams import NGrams
from tests.models.examples import CLASSES, generator_of, make_batch, make_table, seeds, shapes
from tests.oracles import ngrams as oracle
from tests.oracles.em_hrnn import nested

BUCKETS = 7


def make_layer(seed: int) -> NGrams:
    layer = NGrams(len(make_table(seed)), BUCKETS, CLASSES).double()
    torch.nn.init.normal_(layer.table, generator=generator_of(seed))
    return layer


@settings(max_examples=10, deadline=None)
@given(shapes, seeds)
def test_equal_the_oracle(lengths: list[list[int]], seed: int) -> None:
    layer, batch = make_layer(seed), make_batch(lengths, seed)
    with torch.no_grad():
        documents = [nested(batch, batch.words, d) for d in range(batch.n_documents)]
        theirs = torch.stack([oracle.document_scores(layer, words) for words in documents])
        torch.testing.assert_close(layer(batch), theirs)
        torch.testing.assert_close(layer.apart(batch).sum(dim=0), theirs)


def test_common_words_rare_words_and_pairs_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "COMMON", 6)
    layer, batch = make_layer(0), make_batch([[3, 2], [4], [1]], 0)
    parts = {0: slice(6), 1: slice(6, layer.vocabulary), 2: slice(layer.vocabulary, None)}
    with torch.no_grad():
        whole, apart = layer(batch), layer.apart(batch)
        assert (apart.abs().amax((1, 2)) > 0.1).all()
        for part, rows in parts.items():
            kept = layer.table[rows].clone()
            layer.table[rows] = 0
            torch.testing.assert_close(layer(batch), whole - apart[part])
            layer.table[rows] = kept


def test_only_what_a_batch_holds_has_a_gradient() -> None:
    layer, batch = make_layer(0), make_batch([[3, 1], [2]], 0)
    layer(batch).sum().backward()
    gradient = layer.table.grad
    assert gradient.is_sparse
    touched = set(gradient.coalesce().indices()[0].tolist())
    pairs = {int(row) for row in layer.rows_of_pairs(batch, np.array([1, 2, 5]))}
    assert touched == set(batch.words.tolist()) | pairs


def test_a_place_that_is_left_out_takes_its_word_and_its_pair_along() -> None:
    layer, batch = make_layer(0), make_batch([[200]], 0)
    layer.table.data.fill_(1.0)
    share = 200**-0.5
    layer.table.data[layer.vocabulary :] = 1000.0
    said = round(float(layer(batch, 0.5, generator_of(0)).detach()[0, 0]) / share)
    words, pairs = said % 1000 / 2, said // 1000 / 2  # each that is kept counts twice
    assert words - pairs in (0, 1)  # the first word ends no pair
    assert 70 < words < 130
