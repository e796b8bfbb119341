"""Explanations by evidence at every door: data, JSON, terminal and HTML say the same signed numbers."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest

from emhrnn.errors import DataError
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Effects, Explanation
from emhrnn.explain.headline import Shading, balance, headline
from emhrnn.explain.html import html_page
from emhrnn.explain.page import signed

from .documents import HOSTILE, explained
from .evidence import REVIEW, make_run
from .parsed import ATTRIBUTES, ELEMENTS, Page
from .test_terminal import printed

MANY = tuple(f"class {c}" for c in range(40))


def evidenced(
    text: str = REVIEW, classes: tuple[str, ...] = ("bad", "so-so", "good"), **settings: object
) -> Explanation:
    (explanation,) = explain_texts(make_run(classes, **settings), [text])  # type: ignore[arg-type]
    return explanation


def told(explanation: Explanation) -> str:
    return "".join(piece.text for piece in headline(explanation))


@pytest.mark.parametrize("explanation", [evidenced(), evidenced(classes=("bad", "good"), several=True)])
def test_json_and_back(explanation: Explanation) -> None:
    data = explanation.to_dict()
    assert data["decided_by"] == "evidence"
    again = Explanation.from_dict(data)
    assert again.to_dict() == data
    for mine, other in ((again.evidence, explanation.evidence), (again.effects, explanation.effects)):
        assert mine is not None
        for field in fields(mine):
            assert np.array_equal(getattr(mine, field.name), getattr(other, field.name))
    sums = {name: data["evidence"]["bias"][name] for name in explanation.classes}
    for sentence in data["sentences"]:
        for name, value in sentence["evidence"].items():
            sums[name] += value
            assert sum(phrase["evidence"][name] for phrase in sentence["phrases"]) == pytest.approx(value)
    assert sums == pytest.approx(data["evidence"]["logits"])


def test_json_of_many_classes_keeps_the_likeliest() -> None:
    explanation = evidenced(classes=MANY)
    data = explanation.to_dict()
    kept = data["sentences"][0]["phrases"][0]["evidence"]
    assert kept.keys() == {name for name, _ in explanation.ranking()[:5]} | {explanation.predicted}
    again = Explanation.from_dict(data)
    assert again.to_dict() == data
    assert again.effects is not None
    assert explanation.effects is not None
    assert again.effects.total == explanation.effects.total
    assert told(again) == told(explanation)


def test_explanations_by_attention_say_so_and_older_files_are_read() -> None:
    data = explained().to_dict()
    assert data["decided_by"] == "attention"
    assert "evidence" not in data
    del data["decided_by"]
    assert Explanation.from_dict(data).decided_by == "attention"


def test_evidence_that_does_not_fit_is_refused() -> None:
    explanation = evidenced()
    evidence = explanation.evidence
    assert evidence is not None
    with pytest.raises(DataError, match="one number for each phrase and class"):
        replace(explanation, evidence=replace(evidence, phrases=evidence.phrases[1:]))
    with pytest.raises(DataError, match="not finite"):
        replace(explanation, evidence=replace(evidence, phrases=evidence.phrases * np.nan))
    with pytest.raises(DataError, match="without effects"):
        replace(explanation, effects=None)


def test_the_headline_names_the_largest_evidence() -> None:
    explanation = evidenced()
    best = explanation.supporting(1)[0]
    assert told(explanation).startswith(f"Decided most by {best.text} ({signed(best.effect or 0)})")
    several = evidenced(classes=("bad", "good"), several=True, seed=3)
    assert told(several).startswith(("Decided most by", "Most for", "No phrase speaks for"))


def test_a_label_by_the_prior_is_said_to_be_one() -> None:
    assert "No phrase of this text is evidence" in told(evidenced(silent=True))
    assert "No word of this text is known to the model; the label is by" in told(
        evidenced("Qwertz asdfg.", silent=True)
    )
    assert "No word of this text is known to the model" in told(evidenced("Qwertz asdfg."))
    explanation = evidenced()
    effects = explanation.effects
    assert effects is not None
    opposed = replace(
        explanation, effects=Effects(effects.label, effects.words, -np.abs(effects.phrases), effects.sentences, 1.0)
    )
    assert told(opposed) == f"No phrase speaks for it; the label is by the prior of {effects.label} (+1.00)."
    for page in (printed(opposed), Page(html_page(opposed)).text):
        assert "No phrase speaks for it" in page
        assert "Also for" not in page


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_the_balance_is_that_of_the_probabilities(several: bool) -> None:
    shown = evidenced(classes=("bad", "good"), several=several)
    chance = max(shown.probabilities)
    assert shown.effects is not None
    assert shown.effects.total == pytest.approx(float(np.log(chance / (1 - chance))), abs=1e-4)
    text = "".join(piece.text for piece in balance(shown))
    assert f"together {signed(shown.effects.total)} log-odds" in text


def test_marks_are_signed_and_words_that_cancel_have_none() -> None:
    explanation = evidenced()
    shading = Shading(explanation)
    marks = [shading.phrase(phrase) for phrase in explanation.phrases]
    assert max(map(abs, marks)) == 1
    assert [mark > 0 for mark in marks] == [(phrase.effect or 0) > 0 for phrase in explanation.phrases]
    for phrase in explanation.phrases:
        for word in phrase.words:
            assert shading.word(word, phrase) * (phrase.effect or 0) >= 0


def test_the_terminal_without_colour_has_signed_numbers() -> None:
    explanation = evidenced()
    text = printed(explanation, width=300)
    best = explanation.supporting(1)[0]
    assert f"]{signed(best.effect or 0)}" in text
    assert "log-odds" in text
    assert "%" not in text.split("\n\n")[1]
    assert "+" in printed(explanation, encoding="ascii")


def test_the_terminal_has_two_hues() -> None:
    explanation = evidenced()
    signs = np.where(np.arange(len(explanation.phrases)) % 2, 1.0, -1.0)
    assert explanation.effects is not None
    text = printed(replace(explanation, effects=replace(explanation.effects, phrases=signs)), colour="truecolor")
    assert re.search(r"[34]8;2;(111;179;247|169;209;251|53;132;214)", text)  # for: blue
    assert re.search(r"[34]8;2;(255;157;77|255;198;148|204;106;20)", text)  # against: orange


def test_the_page_is_signed_and_ours() -> None:
    explanation = evidenced(HOSTILE + REVIEW, classes=("good", "<b>bad</b>", HOSTILE), seed=2)
    html = html_page(explanation)
    page = Page(html)
    assert page.elements <= ELEMENTS
    assert page.attributes <= ATTRIBUTES
    assert "is evidence for the label" in page.text
    assert "weight of the sentence" not in page.text
    assert re.search(r'class="phrase f5"|class="phrase a5"', html)
    assert not re.search(r'class="phrase t\d', html)
    for sentence in explanation.sentences:
        assert signed(sentence.effect or 0) in page.text
    assert page.text.count("By label:") == len(explanation.phrases)


def test_a_page_of_both_kinds_explains_both() -> None:
    page = Page(html_page([evidenced(), explained()])).text
    assert "is evidence for the label" in page
    assert "weight of the sentence" in page
    assert page.count("show numbers") == 1
