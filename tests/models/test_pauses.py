"""Where a reader would pause: counts against the slow twin, and what follows from them."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from emhrnn.models.pauses import SURE, Pauses
from emhrnn.paper.models.em_hrnn import EMHRNN
from tests.models.examples import paper_network
from tests.oracles import pauses as oracle

WORDS = ["<unk>", "dog", "the", "because", ",", "...", "--", "-", "$"]
documents = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), min_size=1, max_size=4), min_size=1, max_size=5
)


def batch_of(texts: list[list[list[str]]]) -> Batch:
    return Batch.from_lists([[list(map(WORDS.index, sentence)) for sentence in document] for document in texts])


def counted(*portions: list[list[list[str]]]) -> Pauses:
    pauses = Pauses(WORDS)
    pauses.add(batch_of(texts) for texts in portions)
    return pauses


@given(documents, documents)
@settings(max_examples=60, deadline=None)
def test_odds_are_those_of_the_slow_twin(texts: list[list[list[str]]], others: list[list[list[str]]]) -> None:
    """Within sentences; what the last word of one has to do with the next is nobody's business."""
    sentences = [sentence for document in texts for sentence in document]
    found = counted(texts)(batch_of(others)).tolist()
    place = 0
    for sentence in (sentence for document in others for sentence in document):
        for word, following in itertools.pairwise(sentence):
            assert found[place] == pytest.approx(oracle.odds(sentences, word, following), abs=1e-4)
            place += 1
        place += 1


@given(documents, documents)
@settings(max_examples=30, deadline=None)
def test_portions_add_up(first: list[list[list[str]]], second: list[list[list[str]]]) -> None:
    bit_by_bit = counted(first)
    assert not bit_by_bit.counts.isnan().any()
    bit_by_bit.add([batch_of(second)])
    torch.testing.assert_close(bit_by_bit.odds, counted(first + second).odds)


def test_phrases_end_behind_nouns_and_marks_and_before_conjunctions() -> None:
    texts = [[["the", "dog", ",", "because", "the", "dog"]]] * 20
    odds = counted(texts)(batch_of([[["the", "dog", "because", "the", ",", "dog", "dog"]]])).tolist()
    the_dog, dog_because, because_the, the_mark, mark_dog = odds[:5]
    assert the_dog < because_the < dog_because
    assert the_mark < -SURE
    assert mark_dog > 2


def test_without_documents_it_says_nothing() -> None:
    pauses = Pauses(WORDS)
    assert pauses.empty
    assert not pauses(batch_of([[["the", ",", "dog"]]])).any()
    assert not counted([[["dog"]]]).empty


def test_the_model_adds_it_to_the_logit_of_pi() -> None:
    def model(pauses: list[str]) -> EMHRNN:
        generator = torch.Generator().manual_seed(0)
        table = torch.randn(len(WORDS), 5, generator=generator)
        config = paper_network(word_size=4, pauses=bool(pauses))
        return EMHRNN(config, table=table, classes=2, generator=generator, vocabulary=pauses)

    batch = batch_of([[["the", "dog", ",", "because"], ["dog"]]])
    plain, with_pauses = model([]), model(WORDS)
    assert with_pauses.pauses is not None
    torch.testing.assert_close(with_pauses.words(batch).a, plain.words(batch).a)
    with_pauses.pauses.add([batch])
    torch.testing.assert_close(with_pauses.words(batch).a - plain.words(batch).a, with_pauses.pauses(batch))
    z = with_pauses.segment(batch, with_pauses.words(batch))
    assert z[2]
    assert not z[1]
