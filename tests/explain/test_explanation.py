import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings

from emhrnn.explain.arrays import Attention, Effects
from emhrnn.explain.explanation import is_spelled
from tests.oracles import explanation as oracle

from .documents import HOSTILE, explained, ragged


@given(ragged())
@settings(max_examples=60, deadline=None)
def test_weights_of_siblings_and_shares_of_each_level_sum_to_one(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    assert sum(sentence.weight for sentence in explanation.sentences) == pytest.approx(1)
    for sentence in explanation.sentences:
        assert sum(phrase.weight for phrase in sentence.phrases) == pytest.approx(1)
        for phrase in sentence.phrases:
            assert sum(word.weight for word in phrase.words) == pytest.approx(1)
    for nodes in (explanation.sentences, explanation.phrases, explanation.words):
        assert sum(node.share for node in nodes) == pytest.approx(1)


@given(ragged())
@settings(max_examples=60, deadline=None)
def test_the_tree_is_that_of_the_arrays(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    for one in (explanation, dataclasses.replace(explanation, effects=None, pi=None)):
        assert one.sentences == (expected := oracle.sentences(one))
        assert one.phrases == tuple(phrase for sentence in expected for phrase in sentence.phrases)
        assert one.words == tuple(word for phrase in one.phrases for word in phrase.words)


@given(ragged())
@settings(max_examples=60, deadline=None)
def test_a_share_is_the_product_of_the_weights_down_to_it(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    for sentence in explanation.sentences:
        for phrase in sentence.phrases:
            assert phrase.share == pytest.approx(sentence.weight * phrase.weight)
            for word in phrase.words:
                assert word.share == pytest.approx(sentence.weight * phrase.weight * word.weight)


@given(ragged())
@settings(max_examples=60, deadline=None)
def test_spans_point_into_the_original_text(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    for nodes in (explanation.sentences, explanation.phrases, explanation.words):
        assert all(explanation.text[node.start : node.end] == node.text for node in nodes)
        assert [node.start for node in nodes] == sorted(node.start for node in nodes)
    assert [word.text for word in explanation.words] == explanation.text.split()


@given(ragged())
@settings(max_examples=60, deadline=None)
def test_json_has_the_tree(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    data = json.loads(json.dumps(explanation.to_dict()))
    for sentence, node in zip(data["sentences"], explanation.sentences, strict=True):
        told = json.loads(json.dumps(dataclasses.asdict(node)))
        for one in (told, *told["phrases"], *(word for phrase in told["phrases"] for word in phrase["words"])):
            del one["index"]
        assert sentence == told


def test_hostile_text_survives_json() -> None:
    assert json.loads(json.dumps(explained(HOSTILE, label=None).to_dict()))["text"] == HOSTILE


@given(ragged())
@settings(max_examples=40, deadline=None)
def test_the_questions_people_ask(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    path = explanation.attention_path()
    assert path.sentence.weight == max(sentence.weight for sentence in explanation.sentences)
    assert path.phrase.weight == max(phrase.weight for phrase in path.sentence.phrases)
    assert path.word.weight == max(word.weight for word in path.phrase.words)
    assert path.word in path.phrase.words
    strengths = [abs(word.effect or 0) for word in explanation.top_words(100)]
    assert strengths == sorted((abs(word.effect or 0) for word in explanation.words), reverse=True)
    assert len(explanation.top_phrases(2)) == min(2, len(explanation.phrases))
    assert explanation.top_words(0) == []


@given(ragged())
@settings(max_examples=40, deadline=None)
def test_what_decided_has_the_largest_support(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    path = explanation.decisive_path()
    supporting = [phrase for phrase in explanation.phrases if (phrase.effect or 0) > 0]
    if not supporting:
        assert path is None
        return
    assert path is not None
    assert path.phrase in path.sentence.phrases
    assert path.word in path.phrase.words
    spelled = [phrase for phrase in supporting if is_spelled(phrase)]
    assert path.phrase.effect == max(phrase.effect or 0 for phrase in spelled or supporting)
    words = [word for word in path.phrase.words if (word.effect or 0) > 0]
    if words:
        assert path.word.effect == max(word.effect or 0 for word in [w for w in words if is_spelled(w)] or words)


def test_punctuation_decides_only_where_nothing_else_does() -> None:
    explanation = explained("good ! bad")
    one_word_each = np.arange(4)
    for effects, decided in (([1.0, 5.0, -1.0], "good"), ([-1.0, 5.0, -1.0], "!")):
        path = dataclasses.replace(
            explanation, phrase_offsets=one_word_each, sentence_offsets=np.array([0, 3]),
            attention=Attention(np.ones(3), np.ones(3) / 3, np.ones(1)),
            effects=Effects("good", np.array(effects), np.array(effects), np.ones(1)),
        ).decisive_path()  # fmt: skip
        assert path is not None
        assert (path.phrase.text, path.word.text) == (decided, decided)


def test_lift_is_the_weight_against_chance() -> None:
    for sentence in explained().sentences:
        assert sentence.lift == pytest.approx(sentence.weight * 3)
        for phrase in sentence.phrases:
            assert phrase.lift == pytest.approx(phrase.weight * len(sentence.phrases))
            assert all(word.lift == pytest.approx(word.weight * len(phrase.words)) for word in phrase.words)


def test_the_earlier_of_equal_words_wins() -> None:
    even = explained("a b c.")
    even = dataclasses.replace(
        even,
        phrase_offsets=np.array([0, 3]),
        sentence_offsets=np.array([0, 1]),
        attention=Attention(np.full(3, 1 / 3), np.ones(1), np.ones(1)),
        effects=Effects("good", np.ones(3), np.ones(1), np.ones(1)),
    )
    assert [word.text for word in even.top_words(2)] == ["a", "b"]
    assert even.attention_path().word.text == "a"
    path = even.decisive_path()
    assert path is not None
    assert path.word.text == "a"


def test_effects_say_which_way() -> None:
    explanation = explained()
    assert explanation.effects is not None
    order = np.argsort(-explanation.effects.phrases)
    best, worst = explanation.supporting(2), explanation.opposing(2)
    assert best == [explanation.phrases[k] for k in order[:2]]
    assert worst == [explanation.phrases[k] for k in order[::-1][:2]]
    assert all((phrase.effect or 0) > 0 for phrase in best)
    without = dataclasses.replace(explanation, effects=None)
    assert without.supporting() == without.opposing() == []
    assert without.decisive_path() is without.decided_by is None
    assert without.to_dict()["effects_on"] is None


@pytest.mark.parametrize(
    ("predicted", "told"), [("good", "it"), (("good",), "it"), ("bad", "good"), ((), "good"), (("bad", "good"), "good")]
)
def test_effects_on_one_of_several_labels_name_it(predicted: str | tuple[str, ...], told: str) -> None:
    explanation = explained()
    assert explanation.effects is not None
    effects = dataclasses.replace(explanation.effects, label="good")
    assert dataclasses.replace(explanation, predicted=predicted, effects=effects).subject == told


def test_correct_compares_sets_of_labels() -> None:
    explanation = explained()
    assert dataclasses.replace(explanation, label=explanation.predicted).correct is True
    assert dataclasses.replace(explanation, label="elsewhere").correct is False
    assert dataclasses.replace(explanation, label=None).correct is None
    both = dataclasses.replace(explanation, predicted=("good", "bad"), label=("bad", "good"))
    assert both.correct is True


def test_ranking_starts_with_the_most_probable() -> None:
    ranking = explained().ranking()
    assert [p for _, p in ranking] == sorted((p for _, p in ranking), reverse=True)
    assert sum(p for _, p in ranking) == pytest.approx(1)
