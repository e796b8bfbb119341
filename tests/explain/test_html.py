import base64
import hashlib
import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from emhrnn.explain.escape import BIDI_CONTROLS, visible
from emhrnn.explain.headline import open_sentences
from emhrnn.explain.html import html_fragment, html_page
from emhrnn.explain.page import percent
from emhrnn.explain.points import in_points, points
from emhrnn.text import read_document

from .documents import CLASSES, HOSTILE, REVIEW, attention, explain_document, explained, ragged
from .parsed import ATTRIBUTES, ELEMENTS, Page


@pytest.mark.parametrize("text", [REVIEW, HOSTILE])
def test_only_our_own_elements_and_attributes(text: str) -> None:
    explanation = explained(text, label=HOSTILE, classes=("good", "<b>bad</b>", '"><script>', HOSTILE))
    page = Page(html_page(explanation, title="</title><script>alert(1)</script>"))
    assert page.elements <= ELEMENTS
    assert page.attributes <= ATTRIBUTES


@given(ragged())
@settings(max_examples=30, deadline=None)
def test_any_unicode_is_inert_and_all_of_it_is_shown(case: tuple[str, int]) -> None:
    explanation = explained(*case)
    html = html_page(explanation)
    html.encode("utf-8")
    assert "\x00" not in html
    assert not set(BIDI_CONTROLS) & set(html)
    page = Page(html)
    assert page.elements <= ELEMENTS
    assert "".join("".join(page.first_prose).split()) == "".join(visible(explanation.text).split())


def test_the_policy_admits_our_stylesheet_and_nothing_else() -> None:
    html = html_page(explained())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(Page(html).style.encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_the_page_asks_for_nothing() -> None:
    html = html_page([explained(), explained(HOSTILE)])
    assert not re.search(r"@import|url\(|<link|<script|<iframe|<object", html)
    assert not {"src", "href", "style", "srcset", "action"} & Page(html).attributes


def test_every_level_carries_its_effect_as_text() -> None:
    """Sentences and phrases in points, words with a sign; log-odds only where they are asked for."""
    explanation = explained()
    html = html_page(explanation)
    text = Page(html).text
    for level in ("sentences", "phrases"):
        for value in points(explanation, level).tolist():
            assert in_points(value) in text
    strong = max(explanation.words, key=lambda word: abs(word.effect or 0))
    sign = "+" if (strong.effect or 0) > 0 else "\u2212"
    assert re.search(rf'<td class="w100 (for|against)">{re.escape(sign)}', html)
    assert "log-odds" not in html.partition("In log-odds")[0]


def test_attention_is_shown_on_request_and_named() -> None:
    explanation = explained()
    plain, more = (Page(html_page(explanation, attention=asked)).text for asked in (False, True))
    assert "attention" not in plain.lower()
    assert more.count(f"attention {percent(explanation.sentences[0].weight)}") >= 1
    assert "Attention, where the model looked, was highest on" in more
    assert "attention in the phrase" in more


def test_many_explanations_in_one_page() -> None:
    html = html_page([explained(seed=seed) for seed in range(3)])
    assert html.count("<article") == 3
    assert html.count("<style>") == 1


def test_many_classes_fold_away() -> None:
    explanation = explained(classes=tuple(f"class {c}" for c in range(40)), label=None)
    html = html_page(explanation)
    assert "37 more classes" in html
    assert all(f">class {c}<" in html for c in range(40))


def test_what_a_notebook_shows() -> None:
    fragment = explained()._repr_html_()
    assert fragment == html_fragment(explained())
    assert fragment.startswith('<div class="emhrnn">')
    rules = re.sub(r"/\*.*?\*/", "", Page(fragment).style, flags=re.DOTALL)
    selectors = re.findall(r"(?:^|[{}])\s*([^{}@]+?)\s*\{", rules)
    assert len(selectors) > 50
    assert all(
        part.strip().startswith((".emhrnn", "body.emhrnn"))
        for line in selectors
        for part in re.split(r", (?![^(]*\))", line)
    )


def test_a_long_document_is_shown_whole() -> None:
    explanation = explained(" ".join(["word"] * 1500) + ".", label=None)
    assert len("".join(Page(html_page(explanation)).first_prose).split()) >= 1500


def test_a_word_costs_few_bytes() -> None:
    """With the phrases, of two words here, and the sentences it stands in. They were 600."""
    sizes = [len(html_page(explained(REVIEW * times)).encode()) for times in (1, 11)]
    words = 10 * len(explained(REVIEW).words)
    assert (sizes[1] - sizes[0]) / words < 300


def test_all_of_a_very_long_document_is_shown_and_some_of_it_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emhrnn.explain.html.open_sentences", partial(open_sentences, words=200))
    explanation = explained((REVIEW + " ") * 20)
    html = html_page(explanation)
    page = Page(html)
    assert "".join("".join(page.first_prose).split()) == "".join(explanation.text.split())
    opened = html.count('<ol class="phrases inside">')
    assert f"This document has 460 words. {opened} of its 60 sentences, those quoted in the verdict" in page.text
    assert 0 < opened < 60
    assert html.count('class="gauge') == 60 + html.count('<table class="words">')


def test_a_break_tag_between_words_reads_as_a_blank() -> None:
    document = read_document("Good.<br /><br />Not<br>bad at all.")
    probabilities = np.array([0.1, 0.2, 0.7])
    explanation = explain_document(document, probabilities=probabilities, classes=CLASSES, **attention(document, 0))
    page = Page(html_page(explanation))
    assert "<br" not in page.text
    assert "".join(page.first_prose).replace(" ", "") == "Good.Notbadatall."
