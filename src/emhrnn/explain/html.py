"""Explanations as HTML without script: a page of its own, or the fragment that a notebook shows.

Closed, a document reads like text: a bar per sentence, a tint per phrase, an underline per word, `//` where a phrase
ends. A sentence opens into its phrases, with their points of probability, a phrase into its words: blue supports the
prediction, orange opposes it. For a model without phrases, words carry the tint. Attention is there only on request.

A long document has hundreds of thousands of words, so what stands once for each word or phrase is written short: bars
are drawn by the stylesheet, and end tags that HTML implies are left out.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from emhrnn.explain.charts import drawn, level
from emhrnn.explain.counterfactual import Counterfactual
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.explanation import Explanation, Phrase, Sentence, Word
from emhrnn.explain.headline import Shading, attention_line, balance, headline, note, open_sentences, sides
from emhrnn.explain.page import page, percent, stylesheet
from emhrnn.explain.points import class_points, in_points, points
from emhrnn.explain.verdict import because, paragraph, quoted, verdict, warnings, weights

TINTS, UNDERLINES = 5, 4
UNDERLINED = 0.2  # of the largest effect of a word: less has no underline
SIGNED = 0.02  # of the largest effect of a word: less has no sign
CLASSES_LISTED = 6  # with what a phrase says for each
MARKS = """Blue supports the label, orange opposes it; the deeper, the more. Numbers are points of
probability. Underline: the words with the largest effects. <span class="break">//</span> ends a phrase. Italic: a word
that the model does not know. Open a sentence for its phrases, a phrase for its words."""
LEGEND = f'<p class="muted">{MARKS}</p>'
OPTIONS = """<p class="options"><label><input type="checkbox" class="numbers"> show numbers</label>
<label><input type="checkbox" class="plain"> without colour</label></p>"""


def html_page(
    explanations: Explanation | Sequence[Explanation],
    *,
    title: str = "Why this label?",
    counterfactual: Counterfactual | None = None,
    attention: bool = False,
) -> str:
    """One self-contained file for one or many explanations; a counterfactual is that of the first. `attention` adds
    where the model looked."""
    many = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    others = [counterfactual, *[None] * (len(many) - 1)]
    sections = "\n".join(html_section(one, other, attention=attention) for one, other in zip(many, others, strict=True))
    return page(title, f"<h1>{escape(title)}</h1>\n{OPTIONS}\n{sections}\n{LEGEND}")


def html_fragment(explanation: Explanation) -> str:
    """For a notebook: the stylesheet only touches what is inside."""
    section = f"{OPTIONS}\n{html_section(explanation)}\n{LEGEND}"
    return f'<div class="emhrnn"><style>{stylesheet()}</style>\n{section}</div>'


def html_section(
    explanation: Explanation, counterfactual: Counterfactual | None = None, *, attention: bool = False
) -> str:
    """One explanation, for a page that carries the stylesheet: the document and, beside it, the verdict."""
    path, opens = explanation.decisive_path(), open_sentences(explanation)
    document = DocumentHtml(explanation, attention=attention)
    rows = "\n".join(
        document.sentence(sentence, path is not None and sentence.index == path.sentence.index, opened)
        for sentence, opened in zip(explanation.sentences, opens.tolist(), strict=True)
    )
    return f"""<article class="reading">
<div class="verdict-card card">
{verdict(explanation, f"Predicted by {explanation.model}")}
{warnings(explanation)}
{because(explanation) if counterfactual is None else otherwise(counterfactual)}
{paragraph(attention_line(explanation)) if attention else ""}
{weights(explanation)}
<details class="fold"><summary>In log-odds</summary>{summary(explanation)}</details>
</div>
<div class="document card">
<ol class="sentences">
{rows}
</ol>
{"" if opens.all() else some_open(int(opens.sum()), len(opens), len(explanation.words))}
</div>
</article>"""


def summary(explanation: Explanation) -> str:
    """What decided, what else supports and opposes the prediction, the sum of exact evidence, and what the numbers
    are."""
    lines = [headline(explanation), *sides(explanation), balance(explanation)]
    told = "\n".join(paragraph(line) for line in lines if line)
    return f'{told}\n<p class="muted">{escape(note(explanation))}</p>'


def otherwise(counterfactual: Counterfactual) -> str:
    """What would have had to be left out."""
    return f'<p class="path because">{counterfactual.told(list(map(quoted, counterfactual.texts)), escape)}</p>'


def some_open(opened: int, sentences: int, words: int) -> str:
    """That not all sentences of a long document open."""
    return (
        f'<p class="muted">This document has {words:,} words. {opened:,} of its {sentences:,} sentences, those quoted '
        "in the verdict and those with the largest effects, open for their phrases and words; "
        "<code>emhrnn explain --json</code> lists all.</p>"
    )


class DocumentHtml:
    """Tints and bars, by points of probability, and underlines of one document, relative to its largest."""

    def __init__(self, explanation: Explanation, *, attention: bool = False) -> None:
        self.explanation, self.text, self.shading = explanation, explanation.text, Shading(explanation)
        self.points, self.phrase_points = points(explanation, "sentences"), points(explanation, "phrases")
        self.numbers = {
            start: k for k, start in enumerate(explanation.starts[explanation.phrase_offsets[:-1]].tolist())
        }
        self.most, self.most_phrase = (
            float(np.abs(values).max()) or 1.0 for values in (self.points, self.phrase_points)
        )
        self.other_labels = OtherLabels(explanation)
        self.attention = attention and explanation.evidence is None
        whole = "phrase" if explanation.has_phrases else "sentence"
        looked = (f"attention in the {whole}", "in the document", "against chance") if self.attention else ()
        ends = ("ends a phrase",) if explanation.pi is not None else ()
        named = "".join(f"<th>{name}" for name in ("word", "effect", *looked, *ends))
        self.head = f"<thead><tr>{named}" if looked or ends else ""

    def sentence(self, sentence: Sentence, decided: bool, opens: bool) -> str:
        kind, prose = attribute("decided" if decided else ""), self.prose(sentence.phrases)
        row = self.row(sentence, prose, float(self.points[sentence.index]), self.most)
        if not opens:
            return f'<li{kind}><div class="row">{row}</div>'
        if self.shading.has_phrases:
            phrases = "\n".join(map(self.opened_phrase, sentence.phrases))
            inside = f'<ol class="phrases inside">{phrases}</ol>'
        else:
            inside = f'<div class="inside">{self.inside(sentence.phrases[0])}</div>'
        return f'<li{kind}><details><summary class="row">{row}</summary>{inside}</details>'

    def row(self, node: Sentence | Phrase, prose: str, value: float, most: float) -> str:
        looked = f'<span class="attention">attention {escape(percent(node.weight))}</span>' if self.attention else ""
        return f"{gauge(value, most)}{prose}{looked}"

    def opened_phrase(self, phrase: Phrase) -> str:
        row = self.row(phrase, self.prose([phrase]), self.points_of(phrase), self.most_phrase)
        return f'<li><details><summary class="row">{row}</summary>{self.inside(phrase)}</details>'

    def points_of(self, phrase: Phrase) -> float:
        return float(self.phrase_points[self.numbers[phrase.start]])

    def inside(self, phrase: Phrase) -> str:
        """The words of a phrase, and what it says for other labels."""
        rows = "".join(map(self.word_row, phrase.words))
        return f'<table class="words">{self.head}<tbody>{rows}</table>{self.other_labels(self.numbers[phrase.start])}'

    def word_row(self, word: Word) -> str:
        """With a bar and its sign: words are not left out, so that they have no points."""
        long = self.shading.bar(word)
        unknown = "" if word.known else ' <span class="tag">unknown</span>'
        sign = "" if abs(long) < SIGNED else "+" if long > 0 else "\u2212"
        cells = [f'<td class="{drawn(abs(long))}{side(long)}">{sign}']
        if self.attention:
            cells += [f"<td>{escape(percent(part))}" for part in (word.weight, word.share)]
            cells.append(f"<td>\u00d7{word.lift:.1f}")
        if word.boundary is not None:  # phrases end where sentences end, whatever the model says
            last = word.end in self.sentence_ends
            cells.append(f"<td>{'always' if last else escape(percent(word.boundary))}")
        return f'<tr><th scope="row" dir="auto">{escape(word.text)}{unknown}{"".join(cells)}'

    @cached_property
    def sentence_ends(self) -> frozenset[int]:
        one = self.explanation
        return frozenset(one.ends[one.phrase_offsets[one.sentence_offsets[1:]] - 1].tolist())

    def prose(self, phrases: Sequence[Phrase]) -> str:
        """The original characters, from the first phrase to the last, with `//` between phrases."""
        pieces = [self.phrase(phrases[0])]
        for before, after in pairwise(phrases):
            gap = escape(without_breaks(self.text[before.end : after.start]))
            pieces.append(f'{gap}<span class="break" aria-hidden="true">//</span>{gap and " "}{self.phrase(after)}')
        return f'<span class="prose" dir="auto">{"".join(pieces)}</span>'

    def phrase(self, phrase: Phrase) -> str:
        value = self.points_of(phrase) if self.shading.has_phrases else 0.0
        number = f' data-effect="{mark}"' if (mark := in_points(value)) else ""
        return f'<span class="phrase {tint(value / self.most_phrase)}"{number}>{self.phrase_words(phrase)}</span>'

    def phrase_words(self, phrase: Phrase) -> str:
        pieces, place = [], phrase.start
        for word in phrase.words:
            pieces.append(escape(without_breaks(self.text[place : word.start])))
            pieces.append(self.word(word, phrase))
            place = word.end
        return "".join(pieces)

    def word(self, word: Word, phrase: Phrase) -> str:
        shown = escape(word.text) if word.known else f"<i>{escape(word.text)}</i>"
        kind = word_mark(self.shading, word, phrase)
        return shown if kind is None else f"<u{attribute(kind)}>{shown}</u>"


class OtherLabels:
    """What a phrase says for the labels other than the one explained, in points, by its evidence; for two classes it
    would repeat the number."""

    def __init__(self, explanation: Explanation) -> None:
        shown = () if explanation.evidence is None else explanation.evidence.classes
        own = "" if explanation.effects is None else explanation.effects.label
        listed = [name for name, _ in explanation.ranking() if name in shown and name != own]
        self.names = listed[:CLASSES_LISTED] if len(shown) > 2 else []
        self.points = class_points(explanation)[:, [shown.index(name) for name in self.names]]

    def __call__(self, phrase: int) -> str:
        if not self.names:
            return ""
        listed = ", ".join(
            f'{escape(name)} <span class="number">{escape(in_points(value) or "0")}</span>'
            for name, value in zip(self.names, self.points[phrase].tolist(), strict=True)
        )
        return f'<p class="classwise muted">Other labels: {listed}</p>'


def gauge(value: float, most: float) -> str:
    """Points as a bar and a number."""
    return f'<span class="gauge {drawn(abs(value) / most)}{side(value)}">{in_points(value)}</span>'


def word_mark(shading: Shading, word: Word, phrase: Phrase) -> str | None:
    """The classes of the stylesheet for an underlined word; None for one without a mark. Without phrases, it is tinted,
    too."""
    strength = shading.word(word, phrase)
    line = level(abs(strength), UNDERLINES)
    if abs(strength) < UNDERLINED:
        return None
    kinds = [f"u{line}"] if line > 1 else []
    return " ".join(kinds if shading.has_phrases else [*kinds, tint(strength)])


def tint(strength: float) -> str:
    """The class of the stylesheet for a phrase."""
    return f"{'f' if strength > 0 else 'a'}{level(abs(strength), TINTS)}"


def side(strength: float) -> str:
    """The class of the stylesheet for a bar, with the blank before it."""
    return " for" if strength > 0 else " against"


def attribute(kind: str) -> str:
    """A class attribute, if there is a class."""
    return f' class="{kind}"' if kind else ""
