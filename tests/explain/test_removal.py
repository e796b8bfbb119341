"""Taking words out, against plain lists; and effects by removal, against one removal after the other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import is_spelled
from emhrnn.explain.removal import LEFT_OUT, LEVELS, UNKNOWN_WORD, logits_of, units_of, without
from emhrnn.paper.explanations import networks
from emhrnn.paper.explanations.networks import log_odds, removal_effects
from tests.explain import evidence
from tests.explain.runs import small_run
from tests.models.examples import make_batch, seeds, sentences_of, shapes


def phrases_left(words: list[int], z: list[bool], keep: list[bool]) -> list[list[int]]:
    """The phrases of one sentence without the words that are taken out."""
    phrases: list[list[int]] = [[]]
    for word, ends, kept in zip(words, z, keep, strict=True):
        if kept:
            phrases[-1].append(word)
        if ends:
            phrases.append([])
    return [phrase for phrase in phrases if phrase]


@given(shapes, seeds, st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_what_is_left_is_what_lists_say(lengths: list[list[int]], seed: int, share: float) -> None:
    batch, rng = make_batch(lengths, seed), np.random.default_rng(seed)
    z = (rng.random(batch.n_words) < 0.4) | batch.sentence_final
    keep = rng.random(batch.n_words) < share
    smaller, left = without(batch, z, keep)
    begin = 0
    for d in range(batch.n_documents):
        expected = []
        for words in sentences_of(batch, d):
            span = slice(begin, begin + len(words))
            expected.append(phrases_left(words, z[span].tolist(), keep[span].tolist()))
            begin += len(words)
        expected = [phrases for phrases in expected if phrases] or [[[UNKNOWN_WORD]]]
        assert sentences_of(smaller, d) == [[word for phrase in phrases for word in phrase] for phrases in expected]
        offset = int(smaller.word_offsets[d])
        ends = left[offset : int(smaller.word_offsets[d + 1])]
        lengths_left = [len(phrase) for phrases in expected for phrase in phrases]
        assert np.diff(np.flatnonzero(ends), prepend=-1).tolist() == lengths_left
    assert left[smaller.sentence_final].all()


TEXTS = [
    "The soup was not good. We never came back, not worth the money! Room.",
    "Good.",
    "Not good, not bad.",
    "Zzz qqq.",
]


@pytest.mark.parametrize("name", ["em-hrnn", "hn-att", "em-hrnn+ngrams"])
@pytest.mark.parametrize("text", TEXTS)
def test_effects_by_removal_are_those_of_one_removal_after_the_other(name: str, text: str) -> None:
    run = small_run(name)
    batch = run.encoder.encode([text])
    z = (np.arange(batch.n_words) % 3 == 0) | batch.sentence_final
    chosen = torch.tensor([1])
    found = removal_effects(run, batch, z, LEVELS, chosen.numpy())
    assert found is not None

    def odds(logits: np.ndarray) -> float:
        return float(
            log_odds(torch.from_numpy(logits), chosen, multi_label=run.multi_label, temperature=run.temperature)
        )

    for level, effects in zip(LEVELS, found, strict=True):
        units = units_of(batch, z, level).of_word
        assert len(effects) == units[-1] + 1
        for unit, effect in enumerate(effects.tolist()):
            left = logits_of(run, *without(batch, z, units != unit))
            assert effect == pytest.approx(odds(logits_of(run, batch, z)) - odds(left), abs=1e-5)


def test_a_long_document_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run("em-hrnn")
    (exact,) = explain_texts(run, TEXTS[:1], exact=True)
    assert exact.decided_by == "removal"
    monkeypatch.setattr(networks, "MOST_WORDS", 8)
    long, short = explain_texts(run, [TEXTS[0], TEXTS[1]], exact=True)
    assert (long.decided_by, short.decided_by) == ("estimate", "removal")


@pytest.mark.parametrize("seed", range(4))
def test_the_headline_of_evidence_is_the_phrase_without_which_the_prediction_falls_most(seed: int) -> None:
    run = evidence.make_run(("bad", "good"), seed=seed)
    (explanation,) = explain_texts(run, [evidence.REVIEW], exact=True)
    (plain,) = explain_texts(run, [evidence.REVIEW])
    effects, path = explanation.effects, explanation.decisive_path()
    batch = run.encoder.encode([evidence.REVIEW])
    z = np.zeros(batch.n_words, dtype=bool)
    z[explanation.phrase_offsets[1:] - 1] = True
    falls = {}
    for k in range(len(explanation.phrases)):  # one removal after the other
        logits = logits_of(run, *without(batch, z, np.cumsum(z) - z != k)) / run.temperature
        c = int(explanation.probabilities.argmax())
        falls[k] = effects.total - float(logits[0, c] - logits[0, 1 - c])
    assert plain.effects.left_out is None
    supporting = [k for k in np.argsort(-effects.phrases).tolist() if effects.phrases[k] > 0][:LEFT_OUT]
    assert sorted(effects.left_out) == sorted(supporting)
    for k, fall in effects.left_out.items():
        assert fall == pytest.approx(falls[k], abs=1e-4)
    best = max((k for k in supporting if is_spelled(explanation.phrases[k])), key=lambda k: falls[k])
    if falls[best] > 0:
        assert path.phrase.start == explanation.phrases[best].start
        assert "Without it, the l" in explanation.to_dict()["headline"]
    assert explanation.to_dict()["left_out"] == {str(k): fall for k, fall in effects.left_out.items()}
