"""Explanations of the evidence model add up: words to phrases, phrases to sentences, sentences to the logits."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus import Corpus, TextSettings
from emhrnn.errors import ConfigError, DataError
from emhrnn.evaluation.predict import predict
from emhrnn.explain.counterfactual import counterfactual
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.lexicon import Gathered, measured
from emhrnn.models.evidence_reader import AddsEvidence
from emhrnn.training.config import make_config
from emhrnn.training.run import new_run
from tests.explain.evidence import REVIEW, WORDS, make_run
from tests.oracles.exact_effects import support

RUNS = {
    (classes, several): make_run(tuple(f"class {c}" for c in range(classes)), several=several, seed=classes)
    for classes, several in ((2, False), (5, False), (30, False), (3, True), (1, True))
}
sentences = st.lists(st.sampled_from([*WORDS, "unheard"]), min_size=1, max_size=9).map(
    lambda words: " ".join(words) + "."
)
texts = st.lists(st.lists(sentences, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4)


@pytest.mark.parametrize("kind", RUNS)
@given(texts)
@settings(max_examples=12, deadline=None)
def test_phrases_add_up_to_the_logits_for_every_class(kind: tuple[int, bool], some: list[str]) -> None:
    run = RUNS[kind]
    assert isinstance(run.model, AddsEvidence)
    reading = run.model.read(run.encoder.encode(some))
    logits = reading.logits.astype(np.float64) / run.temperature
    if not run.multi_label:
        logits -= logits.mean(axis=1, keepdims=True)
    for explanation, expected, chosen in zip(explain_texts(run, some), logits, reading.chosen.tolist(), strict=True):
        evidence, effects = explanation.evidence, explanation.effects
        assert evidence is not None
        assert effects is not None
        assert effects.label == run.classes[chosen]
        np.testing.assert_allclose(evidence.logits(), expected, atol=1e-4)
        np.testing.assert_allclose(evidence.bias + evidence.phrases.sum(axis=0), expected, atol=1e-4)
        for column, values in ((effects.sentences, evidence.sentences()), (effects.phrases, evidence.phrases)):
            oracle = [support(row, chosen, run.multi_label) for row in values]
            np.testing.assert_allclose(column, oracle, atol=1e-5)
        np.testing.assert_allclose(np.add.reduceat(effects.words, explanation.phrase_offsets[:-1]), effects.phrases)
        np.testing.assert_allclose(
            np.add.reduceat(effects.phrases, explanation.sentence_offsets[:-1]), effects.sentences
        )
        assert effects.total == pytest.approx(support(expected, chosen, run.multi_label), abs=1e-4)


def test_weights_are_shares_of_absolute_effects() -> None:
    (explanation,) = explain_texts(make_run(), [REVIEW])
    assert explanation.effects is not None
    sizes = np.abs(explanation.effects.phrases)
    np.testing.assert_allclose(explanation.phrase_shares, sizes / sizes.sum())
    for phrase in explanation.phrases:
        parts = np.abs([word.effect or 0.0 for word in phrase.words])
        np.testing.assert_allclose([word.weight for word in phrase.words], parts / parts.sum())


def test_what_decided_has_the_largest_effect() -> None:
    for seed in range(20):
        (explanation,) = explain_texts(make_run(seed=seed), [REVIEW])
        path = explanation.decisive_path()
        assert explanation.decided_by == "evidence"
        assert path.phrase.effect == max(phrase.effect or 0.0 for phrase in explanation.phrases)
        assert path.phrase in path.sentence.phrases
        assert path.word.effect == max(word.effect or 0.0 for word in path.phrase.words)


def test_probabilities_are_those_of_a_prediction() -> None:
    run, some = make_run(), [REVIEW, "Not good. Very cold soup."]
    corpus = Corpus.from_texts(some, vocabulary=run.vocabulary, text=run.text)
    table = predict(run.model, corpus, multi_label=False, temperature=run.temperature).probabilities
    for explanation, row in zip(explain_texts(run, some), table, strict=True):
        np.testing.assert_allclose(explanation.probabilities, row, atol=1e-6)


@pytest.mark.parametrize("text", [REVIEW, "Qwertz asdfg."])
def test_a_document_without_evidence_is_labelled_by_the_prior(text: str) -> None:
    run = make_run(silent=True)
    assert isinstance(run.model.bias, torch.Tensor)
    (explanation,) = explain_texts(run, [text])
    assert explanation.effects is not None
    assert explanation.decisive_path() is None
    assert explanation.predicted == run.classes[int(run.model.bias.argmax())]
    assert explanation.effects.total == explanation.effects.prior
    np.testing.assert_allclose(explanation.weights.gamma, 1 / len(explanation.sentences))


def test_what_an_exact_explanation_does_not_take_is_refused() -> None:
    run = make_run()
    with pytest.raises(ConfigError, match="no threshold"):
        explain_texts(run, [REVIEW], threshold=0.5)
    with pytest.raises(DataError, match="no words"):
        explain_texts(run, ["  "])


def test_phrases_can_be_left_out() -> None:
    run = make_run(("bad", "good"))
    other = counterfactual(run, REVIEW)
    assert other.found
    assert other.predicted[0] != other.predicted[1]


def test_a_lexicon_of_phrases() -> None:
    run = make_run(("bad", "good"))
    gathered = Gathered(2)
    gathered.add(explain_texts(run, [REVIEW, "Never worth the money. Not good."]))
    entries = measured(run, gathered, 1)
    assert entries
    assert all(entry.effect > 0 for entry in entries)


def test_other_models_are_not_taken_for_evidence() -> None:
    config = make_config(
        assignments=[f"model.{name}_size=3" for name in ("word", "phrase", "sentence", "attention")], model="em-hrnn"
    )
    vocabulary = make_run().vocabulary
    table = torch.zeros(len(vocabulary), 3)
    run = new_run(config, vocabulary, ("bad", "good"), table, multi_label=False, text=TextSettings())
    assert not isinstance(run.model, AddsEvidence)
