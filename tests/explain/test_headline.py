"""What decided, at every door: data, JSON, terminal and HTML say the same signed numbers, for every kind of model."""

import re
from dataclasses import replace

import numpy as np
import pytest

from emhrnn.explain.arrays import Effects
from emhrnn.explain.explainer import explain_texts
from emhrnn.explain.explanation import Explanation, is_spelled
from emhrnn.explain.headline import Shading, balance, headline, open_sentences
from emhrnn.explain.html import html_page
from emhrnn.explain.page import signed
from emhrnn.explain.points import in_points, points

from .documents import HOSTILE, explained
from .documents import REVIEW as DOCUMENT
from .evidence import REVIEW, make_run
from .parsed import ATTRIBUTES, ELEMENTS, Page
from .runs import TEXT, small_run
from .test_terminal import printed

MANY = tuple(f"class {c}" for c in range(40))


def evidenced(
    text: str = REVIEW, classes: tuple[str, ...] = ("bad", "so-so", "good"), **settings: object
) -> Explanation:
    (explanation,) = explain_texts(make_run(classes, **settings), [text])  # type: ignore[arg-type]
    return explanation


def told(explanation: Explanation) -> str:
    return "".join(part.text for part in headline(explanation))


@pytest.mark.parametrize("explanation", [evidenced(), evidenced(classes=("bad", "good"), several=True)])
def test_json_adds_up(explanation: Explanation) -> None:
    data = explanation.to_dict()
    assert data["decided_by"] == "evidence"
    sums = {name: data["evidence"]["bias"][name] for name in explanation.classes}
    for sentence in data["sentences"]:
        for name, value in sentence["evidence"].items():
            sums[name] += value
            assert sum(phrase["evidence"][name] for phrase in sentence["phrases"]) == pytest.approx(value)
    assert sums == pytest.approx(data["evidence"]["logits"])


def test_a_weaker_phrase_that_decided_says_why_it_is_named() -> None:
    explanation = evidenced()
    effects = explanation.effects
    assert effects is not None
    first, second = np.argsort(-effects.phrases)[:2].tolist()
    assert effects.phrases[second] > 0
    for weaker in (False, True):
        falls = {first: 0.1 if weaker else 2.0, second: 1.0}
        text = told(replace(explanation, effects=replace(effects, left_out=falls)))
        assert explanation.phrases[second if weaker else first].text in text
        assert ("no other phrase that was left out changes it more" in text) == weaker


def test_json_of_many_classes_keeps_the_likeliest() -> None:
    explanation = evidenced(classes=MANY)
    data = explanation.to_dict()
    kept = data["sentences"][0]["phrases"][0]["evidence"]
    assert kept.keys() == {name for name, _ in explanation.ranking()[:5]} | {explanation.predicted}


MODELS = {
    "evidence": lambda exact: evidenced(),
    **{
        name: lambda exact, name=name: explain_texts(small_run(name), [TEXT], exact=exact)[0]
        for name in ("em-hrnn", "hn-att", "mhs-rnn-att")
    },
}


@pytest.mark.parametrize("exact", [False, True], ids=["estimated", "exact"])
@pytest.mark.parametrize("name", MODELS)
def test_no_page_contradicts_itself(name: str, exact: bool) -> None:
    """What decided has the largest support of all that is shown, and carries the deepest tint of its kind."""
    explanation = MODELS[name](exact)
    path = explanation.decisive_path()
    assert path is not None
    nodes = explanation.phrases if explanation.has_phrases else explanation.words
    best = max((node for node in nodes if is_spelled(node)), key=lambda node: node.effect or 0)
    decided = path.phrase if explanation.has_phrases else path.word
    assert decided == best
    said = f"{best.text} ({signed(best.effect or 0)})"
    assert told(explanation).startswith(f"Decided most by {said}")
    data = explanation.to_dict()
    assert data["decided"]["phrase"]["effect"] == path.phrase.effect
    assert f'"{best.text}" ({signed(best.effect or 0)})' in data["headline"]
    page, text = Page(html_page(explanation)).text, " ".join(printed(explanation, width=300).split())
    for shown in (page, text):
        assert "attention" not in shown.lower()
        assert "Decided most by" in shown
        assert signed(best.effect or 0) in shown
    shading = Shading(explanation)
    tints = (
        [shading.phrase(node) for node in nodes] if explanation.has_phrases else [shading.bar(node) for node in nodes]
    )
    spelled = [tint for tint, node in zip(tints, nodes, strict=True) if is_spelled(node)]
    assert max(spelled) == tints[nodes.index(best)]


def test_models_without_phrases_mark_words() -> None:
    explanation = MODELS["hn-att"](True)
    assert not explanation.has_phrases
    shading = Shading(explanation)
    assert {shading.phrase(phrase) for phrase in explanation.phrases} == {0.0}
    html = html_page(explanation)
    assert re.search(r'<u class="u4 f5">|<u class="u4 a5">', html)
    assert not re.search(r'class="phrase [fa][1-5]', html)


def test_several_labels_are_named() -> None:
    several = evidenced(classes=("bad", "good"), several=True, seed=3)
    assert told(several).startswith(("Decided most by", "Most for", "No phrase"))


def opposed(explanation: Explanation, prior: float | None) -> Explanation:
    """Nothing supports the prediction."""
    effects = explanation.effects
    assert effects is not None
    words, phrases = -np.abs(effects.words), -np.abs(effects.phrases)
    return replace(explanation, effects=Effects(effects.label, words, phrases, effects.sentences, prior, effects.by))


def test_a_label_that_nothing_supports_is_said_to_be_one() -> None:
    assert "No phrase of this text supports or opposes it; the label follows" in told(evidenced(silent=True))
    assert "No word of this text is known to the model; the label follows" in told(
        evidenced("Qwertz asdfg.", silent=True)
    )
    by_prior = opposed(evidenced(), 1.0)
    label = by_prior.predicted
    assert told(by_prior) == f"No phrase of this text supports it; the label follows from the prior of {label} (+1.00)."
    for explanation in (by_prior, *(opposed(MODELS[name](True), None) for name in ("em-hrnn", "hn-att"))):
        unit = "phrase" if explanation.has_phrases else "word"
        for page in (" ".join(printed(explanation).split()), Page(html_page(explanation)).text):
            assert f"No {unit} of this text supports it" in page
            assert "Also for" not in page
            assert "Decided" not in page
        assert explanation.to_dict()["decided"] is None


def test_an_explanation_without_effects_does_not_pretend() -> None:
    bare = replace(explained(), effects=None)
    assert "not known" in told(bare)
    for page in (printed(bare), Page(html_page(bare)).text):
        assert "Decided most" not in page


@pytest.mark.parametrize("several", [False, True], ids=["one label", "several"])
def test_the_balance_is_that_of_the_probabilities(several: bool) -> None:
    shown = evidenced(classes=("bad", "good"), several=several)
    chance = max(shown.probabilities)
    assert shown.effects is not None
    assert shown.effects.total == pytest.approx(float(np.log(chance / (1 - chance))), abs=1e-4)
    text = "".join(part.text for part in balance(shown))
    assert f"add up to {signed(shown.effects.total)}, the log-odds" in text


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
    assert "add up to phrases" in page.text
    assert re.search(r'class="phrase f5"|class="phrase a5"', html)
    for value in points(explanation, "phrases").tolist():
        assert in_points(value) in page.text
    assert page.text.count("Other labels:") == len(explanation.phrases)


def test_a_page_of_two_kinds_explains_both() -> None:
    page = Page(html_page([evidenced(), explained()])).text
    assert "add up to phrases" in page
    assert "(estimated)" in page
    assert page.count("show numbers") == 1


def test_everything_opens_in_a_short_document() -> None:
    explanation = explained()
    assert open_sentences(explanation, len(explanation.words)).all()


def test_what_is_quoted_opens_first_and_then_the_strongest() -> None:
    explanation = explained(DOCUMENT * 40)
    lengths = np.array([sum(len(phrase.words) for phrase in sentence.phrases) for sentence in explanation.sentences])
    quoted = {phrase.text for phrase in (*explanation.supporting(), *explanation.opposing())}
    opens = open_sentences(explanation, 300)
    assert 300 - lengths.max() < lengths[opens].sum() <= 300
    found = {phrase.text for k in np.flatnonzero(opens) for phrase in explanation.sentences[k].phrases}
    assert quoted <= found
    others = [k for k in np.flatnonzero(opens) if not quoted & {p.text for p in explanation.sentences[k].phrases}]
    assert explanation.effects is not None
    strengths = np.abs(explanation.effects.sentences)
    assert strengths[others].mean() > strengths[~opens].mean()
    path = explanation.decisive_path()
    assert path is not None
    assert opens[path.sentence.index]
