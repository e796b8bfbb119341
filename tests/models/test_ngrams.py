"""What words and pairs say by themselves, against Python loops over them."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.models import ngrams
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.ngrams import NGrams, Shares
from tests.models.examples import CLASSES, generator_of, make_batch, make_table, paper_network, seeds, shapes
from tests.oracles import em_hrnn as oracle

BUCKETS = 7


def make_layer(seed: int) -> NGrams:
    layer = NGrams(len(make_table(seed)), BUCKETS, CLASSES).double()
    torch.nn.init.normal_(layer.table, generator=generator_of(seed))
    return layer


class Owner:
    """What the oracle asks of a model."""

    def __init__(self, ngrams: NGrams) -> None:
        self.ngrams = ngrams


@settings(max_examples=10, deadline=None)
@given(shapes, seeds)
def test_equal_the_oracle(lengths: list[list[int]], seed: int) -> None:
    layer, batch = make_layer(seed), make_batch(lengths, seed)
    with torch.no_grad():
        ours, by_words = layer(batch), layer.of_words(batch)
        documents = [oracle.nested(batch, batch.words, d) for d in range(batch.n_documents)]
        torch.testing.assert_close(ours, torch.stack([oracle.said(Owner(layer), words) for words in documents]))
        theirs = [own for words in documents for said in oracle.said_by_words(Owner(layer), words) for own in said]
        torch.testing.assert_close(by_words, torch.stack(theirs))


def test_begins_as_the_model_without() -> None:
    with_ngrams, without = (
        EMHRNN(
            paper_network(word_size=4, phrase_size=3, sentence_size=3, ngrams=ngrams, buckets=BUCKETS),
            table=make_table(0), classes=CLASSES, generator=generator_of(0),
        )
        for ngrams in (True, False)
    )  # fmt: skip
    batch = make_batch([[3, 2], [4]], 0)
    torch.testing.assert_close(with_ngrams(batch).logits, without(batch).logits, atol=0, rtol=0)


def test_shares_scale_what_each_expert_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "COMMON", 6)
    config = paper_network(ngrams=True, buckets=BUCKETS)
    model = EMHRNN(config, table=make_table(0), classes=CLASSES, generator=generator_of(0)).double()
    torch.nn.init.normal_(model.ngrams.table, generator=generator_of(1))
    batch = make_batch([[3, 2], [4], [1]], 0)
    with torch.no_grad():
        said = model.ngrams.apart(batch)
        recurrent = model(batch).logits - said.sum(0)
        assert (said.abs().amax((1, 2)) > 0.1).all()
        model.weigh(Shares(recurrent=0.5, common=2.0, rare=3.0, pairs=0.0))
        torch.testing.assert_close(model(batch).logits, 0.5 * recurrent + 2 * said[0] + 3 * said[1])
        torch.testing.assert_close(model.ngrams.apart(batch), said * torch.tensor([2.0, 3.0, 0.0])[:, None, None])


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
