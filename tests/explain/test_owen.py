"""Owen values against the mean over all orders, against shap, and against the sums they promise."""

import importlib.util
from functools import cache

import numpy as np
import pytest

from emhrnn.api import Model
from emhrnn.errors import ConfigError, DataError
from emhrnn.explain import owen
from emhrnn.explain.explainer import explain_texts, findings
from emhrnn.explain.owen import owen_effects, owen_values
from tests.explain.evidence import REVIEW, make_run
from tests.explain.runs import TEXT, small_run
from tests.oracles.owen import owen_oracle

TREES = [
    [[[0]]],
    [[[0, 1], [2]]],
    [[[0, 1], [2, 3]], [[4, 5], [6]]],
    [[[0, 1, 2], [3]], [[4]], [[5, 6]]],
]


def of_words(tree: list[list[list[int]]]) -> tuple[np.ndarray, np.ndarray]:
    phrases = [phrase for sentence in tree for phrase in sentence]
    of_phrase = np.repeat(np.arange(len(phrases)), [len(phrase) for phrase in phrases])
    of_sentence = np.repeat(np.arange(len(tree)), [sum(map(len, sentence)) for sentence in tree])
    return of_phrase, of_sentence


def random_game(words: int, seed: int) -> np.ndarray:
    """v of every set, as a table: bit t of its number is word t."""
    return np.random.default_rng(seed).normal(size=2**words)


def of_sets(table: np.ndarray, keep: np.ndarray) -> np.ndarray:
    return table[keep @ (1 << np.arange(keep.shape[1]))]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("seed", range(3))
def test_few_words_are_enumerated(tree: list[list[list[int]]], seed: int) -> None:
    phrases, sentences = of_words(tree)
    table = random_game(len(phrases), seed)
    found = owen_values(lambda keep: of_sets(table, keep), phrases, sentences)
    expected = owen_oracle(cache(lambda joined: float(table[sum(1 << word for word in joined)])), tree)
    np.testing.assert_allclose(found.words, expected, atol=1e-12)
    assert found.error == 0
    assert found.words.sum() == pytest.approx(table[-1] - table[0])


def test_many_orders_come_near_within_the_stated_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = TREES[2]
    phrases, sentences = of_words(tree)
    table = random_game(len(phrases), 5)
    exact = owen_values(lambda keep: of_sets(table, keep), phrases, sentences)
    monkeypatch.setattr(owen, "MOST_SETS", 0)
    found = owen_values(lambda keep: of_sets(table, keep), phrases, sentences, orders=4000)
    starts = [0, 2, 4, 6]
    misses = np.abs(np.add.reduceat(found.words - exact.words, starts))
    assert 0 < found.error < 0.1
    assert misses.max() < 4 * found.error
    assert found.words.sum() == pytest.approx(table[-1] - table[0])
    assert found.passes == 4000 * 6 + 2


@pytest.mark.parametrize("seed", range(3))
def test_an_additive_game_has_its_own_parts_as_values_in_every_hierarchy(seed: int) -> None:
    """Why the evidence of the evidence model is its Owen values: v(S) is the prior and what the words of S add."""
    run = make_run(("bad", "good"), seed=seed)
    (explanation,) = explain_texts(run, ["Not good. Never worth the money."])
    effects = explanation.effects
    assert effects is not None
    assert effects.prior is not None
    prior, words = effects.prior, effects.words
    tree, t = list[list[list[int]]](), 0
    for sentence in explanation.sentences:
        tree.append([])
        for phrase in sentence.phrases:
            tree[-1].append(list(range(t, t := t + len(phrase.words))))
    expected = owen_oracle(lambda joined: prior + sum(words[word] for word in joined), tree)
    np.testing.assert_allclose(words, expected, atol=1e-9)


def test_the_evidence_model_shows_its_evidence() -> None:
    run = make_run()
    (plain,), (shared,) = explain_texts(run, [REVIEW]), explain_texts(run, [REVIEW], values="owen")
    assert shared.decided_by == "evidence"
    np.testing.assert_array_equal(plain.effects.words, shared.effects.words)


@pytest.mark.parametrize("name", ["em-hrnn", "hn-att"])
@pytest.mark.parametrize("text", [TEXT, "Not good."])
def test_values_add_up_to_the_log_odds(name: str, text: str) -> None:
    run = small_run(name)
    explanation = Model(run).explain(text, values="owen")
    effects, p = explanation.effects, explanation.probabilities.max()
    assert explanation.decided_by == "owen"
    assert effects.total == pytest.approx(np.log(p / (1 - p)), abs=1e-4)
    np.testing.assert_allclose(np.add.reduceat(effects.words, explanation.phrase_offsets[:-1]), effects.phrases)
    np.testing.assert_allclose(np.add.reduceat(effects.phrases, explanation.sentence_offsets[:-1]), effects.sentences)
    assert (effects.error > 0) == (text == TEXT)
    data = explanation.to_dict()
    assert (data["decided_by"], data["error"], data["prior"]) == ("owen", effects.error, effects.prior)
    assert ("Sampled" in str(explanation)) == (text == TEXT)


def test_what_owen_values_do_not_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    run = small_run("hn-att")
    with pytest.raises(ConfigError, match="effects, owen"):
        Model(run).explain(TEXT, values="shapley")
    monkeypatch.setattr(owen, "MOST_WORDS", 5)
    with pytest.raises(DataError, match="at most 5"):
        Model(run).explain(TEXT, values="owen")


@pytest.mark.filterwarnings("ignore::Warning")  # of shap itself
@pytest.mark.skipif(importlib.util.find_spec("shap") is None, reason="needs shap: pip install 'emhrnn[shap]'")
def test_values_are_those_of_shap_where_its_tree_is_ours() -> None:
    """Two sentences of two phrases of two words: a binary tree, which is all that shap's PartitionExplainer takes."""
    from emhrnn.paper.explanations.sampled import partition_values

    run = small_run("hn-att")
    (document,), batch = run.encoder.locate(["Soup good money. Room clean back."])
    found = findings(run, batch)
    z = np.zeros(len(document), dtype=bool)
    z[1::2] = True
    assert np.diff(batch.sentence_offsets).tolist() == [4, 4]
    ours = owen_effects(run, batch, z, found.effects.classes)
    theirs, passes = partition_values(run, batch, z, int(found.effects.classes[0]), evaluations=100_000)
    np.testing.assert_allclose(ours.words, theirs, atol=1e-4)
    assert passes >= 8
