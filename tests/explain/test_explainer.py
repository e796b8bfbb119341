"""Explanations of raw texts: what is read fast and built at once is what reading and building one by one would give."""

import copy
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus import TextSettings
from emhrnn.corpus.record import clean_text
from emhrnn.errors import DataError
from emhrnn.explain.explainer import explain_texts
from emhrnn.text import Vocabulary, read_document
from emhrnn.training.config import make_config
from emhrnn.training.run import Run, new_run
from tests.oracles.text import count_words
from tests.text.strategies import FRAGMENTS, hard_texts, texts


@pytest.fixture(scope="module")
def run() -> Run:
    vocabulary = Vocabulary.from_counts(count_words(FRAGMENTS))
    table = torch.randn(len(vocabulary), 6, generator=torch.Generator().manual_seed(0))
    names = ("word_size", "phrase_size", "sentence_size", "attention_size")
    config = make_config(assignments=[f"model.{name}=4" for name in names], model="em-hrnn")
    return new_run(config, vocabulary, ("bad", "good"), table, multi_label=False, text=TextSettings())


with_words = st.one_of(texts, hard_texts).map(lambda text: text + "!")  # an empty one has no explanation


@settings(max_examples=15, deadline=None)
@given(st.lists(with_words, min_size=1, max_size=3))
def test_words_are_those_of_the_slow_reader(run: Run, some: list[str]) -> None:
    slow = [read_document(clean_text(text)[0]) for text in some]
    for document, explanation in zip(slow, explain_texts(run, some), strict=True):
        assert explanation.text == document.text
        assert [(word.start, word.end) for word in explanation.words] == list(
            zip(document.starts.tolist(), document.ends.tolist(), strict=True)
        )
        assert [(s.start, s.end) for s in explanation.sentences] == document.sentence_spans
        assert [word.known for word in explanation.words] == [word in run.vocabulary for word in document.words]
        replace(explanation)  # is checked as one that somebody made by hand
    batch = run.encoder.encode(some)
    assert batch.words.tolist() == [run.vocabulary.id_of(word) for document in slow for word in document.words]
    lengths = [len(sentence) for document in slow for sentence in document.sentences]
    assert batch.sentence_lengths.tolist() == lengths
    assert np.diff(batch.document_offsets).tolist() == [document.n_sentences for document in slow]


def test_an_explanation_does_not_depend_on_its_company(run: Run) -> None:
    some = ["Hello world! It’s plain.", "don't", "U.S. 👍🏽 girls'. Hello, plain world. Mr. (x)"]
    for text, together in zip(some, explain_texts(run, some), strict=True):
        (alone,) = explain_texts(run, [text])
        compare(together, alone)


def compare(one: Any, other: Any) -> None:
    """Field by field, down to the arrays."""
    if isinstance(one, np.ndarray):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)
        assert copy.deepcopy(one).base is None  # who keeps a copy of one explanation does not keep all
    elif is_dataclass(one):
        for field in fields(one):
            compare(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


def test_what_cannot_be_read_is_named(run: Run) -> None:
    with pytest.raises(DataError, match="text 2 has no words; give a text with at least one word"):
        explain_texts(run, ["Hello", " <br /> "])
    assert explain_texts(run, []) == []
