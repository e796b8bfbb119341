"""The weights of every kind of model as one tree, against plain loops over the definition."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus.batch import Batch
from emhrnn.explain.headline import attention_line
from emhrnn.models.model import Output
from emhrnn.paper.explanations.attention import levels_of
from tests.explain.documents import REVIEW, attention, explain_document, explained, softmaxes, split


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[list[int]], int]:
    """Words of each sentence of each document, and a seed."""
    lengths = st.lists(st.integers(1, 6), min_size=1, max_size=4)
    return draw(st.lists(lengths, min_size=1, max_size=3)), draw(st.integers(0, 2**20))


def joint_output(shape: list[list[int]], seed: int) -> tuple[Batch, Output]:
    """One softmax over the words and phrases of each sentence, as MHS-RNN has it."""
    generator = np.random.default_rng(seed)
    batch = Batch.from_lists([[[1] * words for words in document] for document in shape])
    z = (generator.random(batch.n_words) > 0.6) | batch.sentence_final
    scores = np.exp(2 * generator.normal(size=batch.n_words)), np.exp(2 * generator.normal(size=int(z.sum())))
    of_phrase = batch.sentence_of_word[z]
    total = np.bincount(batch.sentence_of_word, scores[0]) + np.bincount(of_phrase, scores[1])
    alpha, beta = scores[0] / total[batch.sentence_of_word], scores[1] / total[of_phrase]
    gamma = softmaxes(generator.normal(size=batch.n_sentences), batch.document_offsets)
    tensors = [torch.from_numpy(x.astype(np.float32)) for x in (alpha, beta, gamma)]
    logits = torch.zeros(batch.n_documents, 2)
    return batch, Output(logits, logits, z=z, alpha=tensors[0], beta=tensors[1], gamma=tensors[2], joint=True)


@given(shapes())
@settings(max_examples=25, deadline=None)
def test_a_phrase_weighs_what_it_and_its_words_weigh(given: tuple[list[list[int]], int]) -> None:
    batch, output = joint_output(*given)
    levels = levels_of(output, batch)
    assert levels is not None
    assert output.z is not None
    assert output.alpha is not None
    assert output.beta is not None
    starts = [0, *(np.flatnonzero(output.z) + 1).tolist()]
    by_sentence = [0.0] * batch.n_sentences
    for k in range(len(starts) - 1):
        words = output.alpha[starts[k] : starts[k + 1]].tolist()
        assert levels.beta[k] == pytest.approx(sum(words) + float(output.beta[k]), rel=1e-5)
        assert levels.alpha[starts[k] : starts[k + 1]].tolist() == pytest.approx([w / sum(words) for w in words], 1e-5)
        by_sentence[batch.sentence_of_word[starts[k]]] += float(levels.beta[k])
    assert by_sentence == pytest.approx([1] * batch.n_sentences, rel=1e-5)
    assert levels.direct is not None
    assert levels.direct.tolist() == output.alpha.tolist()


def test_without_phrases_every_sentence_is_one() -> None:
    batch = Batch.from_lists([[[1, 2], [3]], [[4, 5, 6]]])
    alpha = torch.tensor([0.25, 0.75, 1, 0, 0, 0])  # no weight reached the last sentence
    output = Output(torch.zeros(2, 2), torch.zeros(2, 2), alpha=alpha, gamma=torch.tensor([0.5, 0.5, 1]))
    levels = levels_of(output, batch)
    assert levels is not None
    assert levels.z.tolist() == [False, True, True, False, False, True]
    assert levels.beta.tolist() == [1, 1, 1]
    assert levels.alpha.tolist() == pytest.approx([0.25, 0.75, 1, 1 / 3, 1 / 3, 1 / 3])


def test_a_model_without_weights_has_no_tree() -> None:
    batch = Batch.from_lists([[[1, 2]]])
    assert levels_of(Output(torch.zeros(1, 2), torch.zeros(1, 2), z=np.array([False, True])), batch) is None


def test_the_descent_goes_straight_to_the_word_where_words_have_direct_weights() -> None:
    """The heaviest word of the sentence need not be in its heaviest phrase."""
    plain = explained(REVIEW, 3)
    heaviest = int(plain.weights.gamma.argmax())
    first, last = plain.phrase_offsets[plain.sentence_offsets[heaviest : heaviest + 2]].tolist()
    for t in range(first, last):
        direct = np.full(len(plain.starts), 0.01)
        direct[t] = 0.02
        direct_too = replace(plain, attention=replace(plain.weights, direct=direct))
        sentence, phrase, word = direct_too.attention_path()
        assert word == plain.words[t]
        assert word in phrase.words
        assert phrase in sentence.phrases
        assert direct_too.to_dict()["direct"] == direct.tolist()


def test_one_phrase_is_not_told_twice() -> None:
    document = split("the soup was cold.")
    weights = attention(document, 0) | {"z": np.array([False, False, False, True]), "beta": np.ones(1, np.float32)}
    weights["alpha"] = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    explanation = explain_document(document, probabilities=np.ones(1), classes=("a",), **weights)
    line = "".join(part.text for part in attention_line(explanation))
    assert "in it on cold. (40%)" in line
    assert "in that" not in line
