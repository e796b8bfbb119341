"""Falls of the probability against plain lists, and the scores of the methods."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from emhrnn.corpus import TextSettings
from emhrnn.explain.removal import LEVELS, RemovalUnits, logits_without, units_of
from emhrnn.paper.explanations.faithfulness import SHARES, probability_falls
from emhrnn.paper.explanations.methods import ReadTexts, integrated_gradients, odds_on_path, score
from emhrnn.paper.explanations.networks import log_odds
from emhrnn.text import Vocabulary
from emhrnn.training.config import make_config
from emhrnn.training.run import Run
from tests.models.examples import VOCABULARY, enlarged, make_batch, seeds, shapes
from tests.oracles import faithfulness as oracle
from tests.oracles.em_hrnn import nested
from tests.paper.explanations.test_networks import make_model


def make_texts(lengths: list[list[int]], seed: int, *, double: bool = False) -> ReadTexts:
    """An EM-HRNN with random weights, and documents with random phrases."""
    model = make_model(seed)
    model = enlarged(model, 1.5) if double else model
    batch, rng = make_batch(lengths, seed), np.random.default_rng(seed)
    z = (rng.random(batch.n_words) < 0.4) | batch.sentence_final
    vocabulary = Vocabulary(["<unk>", *map(str, range(1, VOCABULARY))])
    run = Run(model, make_config(model="em-hrnn"), vocabulary, ("a", "b", "c"), False, TextSettings())
    with torch.no_grad():
        logits = model.encode(batch, model.words(batch), z).logits
    chosen = logits.argmax(dim=1)
    odds = log_odds(logits, chosen, multi_label=False, temperature=1.0).double().numpy()
    return ReadTexts(run, [], batch, z, chosen, odds)


@settings(max_examples=5, deadline=None)
@given(shapes, seeds, st.sampled_from(LEVELS))
def test_falls_are_those_of_plain_lists(lengths: list[list[int]], seed: int, level: str) -> None:
    texts = make_texts(lengths, seed, double=True)
    units = units_of(texts.batch, texts.z, level)
    scores = np.random.default_rng(seed).integers(0, 4, units.offsets[-1]).astype(np.float64)  # ties, too
    falls = probability_falls(texts, level, scores, (0.2, 0.5))
    for d in range(texts.batch.n_documents):
        own = scores[units.offsets[d] : units.offsets[d + 1]].tolist()
        words, z = nested(texts.batch, texts.batch.words, d), nested(texts.batch, texts.z, d)
        for k, share in enumerate((0.2, 0.5)):
            expected = oracle.falls(texts.run.model, words, z, level, own, share)
            np.testing.assert_allclose(falls[:, k, d], expected, atol=1e-6)


def test_the_top_share_is_at_least_one_unit_and_the_earlier_wins() -> None:
    units = RemovalUnits(np.arange(7), np.array([0, 3, 7]))
    scores = np.array([1.0, 5, 5, 0, 2, 2, 2])
    assert units.top(scores, 0.01).tolist() == [False, True, False, False, True, False, False]
    assert units.top(scores, 0.5).tolist() == [False, True, True, False, True, True, False]
    assert units.top(scores, 1.0).all()


def test_removal_is_what_really_happens() -> None:
    texts = make_texts([[3, 2], [4]], 3)
    found = score("removal", texts, np.random.default_rng(0))
    assert found is not None
    for level in LEVELS:
        units = units_of(texts.batch, texts.z, level)
        for d in range(2):
            first, last = texts.batch.word_offsets[d : d + 2]
            keep = units.of_word[first:last] != units.offsets[d]
            logits = logits_without(texts.run, texts.batch.part(d, d + 1), texts.z[first:last], keep[None])
            odds = log_odds(torch.from_numpy(logits), texts.chosen[d : d + 1], multi_label=False, temperature=1.0)
            assert found.levels[level][units.offsets[d]] == pytest.approx(texts.odds[d] - float(odds[0]), abs=1e-5)


def test_phrases_that_are_sentences_are_left_out_once() -> None:
    texts = make_texts([[3, 2], [4]], 3)
    texts = replace(texts, z=texts.batch.sentence_final)
    found = score("removal", texts, np.random.default_rng(0))
    assert found is not None
    assert found.forward == 1 + (9 + 3) / 2  # of words and sentences, in two documents
    assert found.levels["phrase"] is found.levels["sentence"]


@pytest.mark.parametrize(
    ("method", "passes"),
    [
        ("attention", (1, 0)),
        ("first-order", (1, 1)),
        ("random", (0, 0)),
        ("integrated gradients", (50, 50)),
    ],
)
def test_every_method_scores_every_unit(method: str, passes: tuple[int, int]) -> None:
    texts = make_texts([[3, 1, 4], [2]], 1)
    found = score(method, texts, np.random.default_rng(0))
    assert found is not None
    assert (found.forward, found.backward) == passes
    for level in LEVELS:
        assert len(found.levels[level]) == units_of(texts.batch, texts.z, level).offsets[-1]
        assert probability_falls(texts, level, found.levels[level]).shape == (2, len(SHARES), 2)
    if method == "attention":
        np.testing.assert_allclose(found.levels["word"].sum(), 2, atol=1e-5)  # shares of two documents


@pytest.mark.parametrize("seed", [2, 5])  # without and with n-grams
def test_integrated_gradients_add_up_to_the_difference_from_no_words(seed: int) -> None:
    """Their completeness axiom: the right function is being integrated."""
    texts = make_texts([[3, 2], [4]], seed)
    whole, nothing = (odds_on_path(texts, share)[0].detach().numpy() for share in (1.0, 0.0))
    np.testing.assert_allclose(whole, texts.odds, atol=1e-5)
    words = integrated_gradients(texts, steps=200)
    assert words is not None
    sums = np.add.reduceat(words, texts.batch.word_offsets[:-1])
    np.testing.assert_allclose(sums, whole - nothing, atol=1e-3)
