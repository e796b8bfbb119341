"""Explanations as HTML without script: a page of its own, or the fragment that a notebook shows.

Closed, a document reads like text: a bar per sentence, a tint per phrase, an underline per word, `//` where a phrase
ends. A sentence opens into its phrases, a phrase into its words, each with its numbers.

A long document has hundreds of thousands of words, so what stands once for each word or phrase is written short: bars
are drawn by the stylesheet, and end tags that HTML implies are left out.

Where phrases add up (evidence), tints and bars are signed: blue speaks for the prediction, orange against it.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from emhrnn.explain.counterfactual import Counterfactual
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.explanation import Explanation, Labels, Phrase, Sentence, Word, as_tuple
from emhrnn.explain.headline import Fragment, Shading, balance, headline, opening, ways
from emhrnn.explain.page import page, percent, signed, stylesheet
from emhrnn.explain.svg import bar, drawn, level


def html_page(
    explanations: Explanation | Sequence[Explanation],
    *,
    title: str = "Why this label?",
    counterfactual: Counterfactual | None = None,
) -> str:
    """One self-contained file for one or many explanations; a counterfactual is that of the first."""
    many = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    others = [counterfactual, *[None] * (len(many) - 1)]
    sections = "\n".join(html_section(*pair) for pair in zip(many, others, strict=True))
    return page(title, f"<h1>{escape(title)}</h1>\n{legend(many)}\n{sections}")


def html_fragment(explanation: Explanation) -> str:
    """For a notebook: the stylesheet only touches what is inside."""
    return (
        f'<div class="emhrnn"><style>{stylesheet()}</style>\n{legend([explanation])}\n{html_section(explanation)}</div>'
    )


def legend(explanations: Sequence[Explanation]) -> str:
    """What the signs mean, for the kinds of explanations that are there."""
    kinds = dict.fromkeys(explanation.decided_by for explanation in explanations)
    return "\n".join([*(LEGENDS[kind] for kind in kinds), OPTIONS])


LEGENDS = {
    "attention": """<p class="muted">Bar: weight of the sentence, or of the phrase in it. Tint: share of the phrase.
Underline: share of the word. <span class="break">//</span> ends a phrase. Italic: a word that the model does not know.
Open a sentence for its phrases, a phrase for its words.
+ speaks for the prediction, \u2212 against it: about how far its log-odds would fall without this part.</p>""",
    "evidence": """<p class="muted">+ (blue) is evidence for the label, \u2212 (orange) against it, in log-odds; with
more than two labels, against the mean of the others. Words add up to phrases, phrases to sentences, and sentences with
the prior to the log-odds of the probabilities.
Underline: the strongest words. <span class="break">//</span> ends a phrase. Italic: a word unknown to the model.
Open a sentence for its phrases, a phrase for its words.</p>""",
}
OPTIONS = """<p class="options"><label><input type="checkbox" class="numbers"> show numbers</label>
<label><input type="checkbox" class="plain"> without colour</label></p>"""


def html_section(explanation: Explanation, counterfactual: Counterfactual | None = None) -> str:
    """One explanation, for a page that carries the stylesheet."""
    heaviest = explanation.decisive_path().sentence.index if explanation.supported else None
    kind = "card evidence" if explanation.evidence is not None else "card"
    painter, opens = _DocumentHtml(explanation), opening(explanation)
    rows = "\n".join(
        painter.sentence(sentence, sentence.index == heaviest, opened)
        for sentence, opened in zip(explanation.sentences, opens.tolist(), strict=True)
    )
    return f"""<article class="{kind}">
<header>
<p class="model">{escape(explanation.model)}</p>
{prediction(explanation)}
{class_tables(explanation)}
{decisive_path(explanation)}
{speaking(explanation)}
{"" if explanation.evidence is None else paragraph(balance(explanation))}
{"" if counterfactual is None else otherwise(counterfactual)}
{"" if opens.all() else some_open(int(opens.sum()), len(opens), len(explanation.words))}
</header>
<ol class="sentences">
{rows}
</ol>
</article>"""


def prediction(explanation: Explanation) -> str:
    verdict = ""
    if explanation.label is not None:
        kind, sign = ("right", "\u2713 correct") if explanation.correct else ("wrong", "\u2717 wrong")
        verdict = f' <span class="verdict {kind}">{sign}: labelled {escape(joined(explanation.label))}</span>'
    return f'<h2 class="prediction">{escape(joined(explanation.predicted))}{verdict}</h2>'


def class_tables(explanation: Explanation) -> str:
    ranking, chosen = explanation.ranking(), as_tuple(explanation.predicted)
    if len(ranking) <= CLASSES_SHOWN:  # in their own order: one to five stars reads better than sorted
        ranking = list(zip(explanation.classes, explanation.probabilities.tolist(), strict=True))
    shown, rest = ranking[:CLASSES_SHOWN], ranking[CLASSES_SHOWN:]
    table = class_table(shown, chosen)
    if rest:
        table += (
            f'<details><summary class="muted">{len(rest)} more classes</summary>{class_table(rest, chosen)}</details>'
        )
    return table


def class_table(rows: Iterable[tuple[str, float]], chosen: tuple[str, ...]) -> str:
    cells = "".join(
        f'<tr{attribute("chosen" if name in chosen else "")}><th scope="row">{escape(name)}</th>'
        f'<td>{bar(probability, "chance")}</td><td class="number">{escape(percent(probability))}</td></tr>'
        for name, probability in rows
    )
    return f'<table class="classes" aria-label="Probability of each class"><tbody>{cells}</tbody></table>'


def decisive_path(explanation: Explanation) -> str:
    if explanation.evidence is not None:
        return paragraph(headline(explanation))
    sentence, phrase, word = explanation.decisive_path()
    through, whole = "", "the sentence"
    if len(sentence.phrases) > 1:  # else the phrase is the sentence, and models without phrases have no other
        through, whole = f"{quoted(phrase.text)} ({share_of(phrase.weight, whole)}), in that ", "the phrase"
    return (
        f'<p class="path">Decided most by sentence {sentence.index + 1} ({share_of(sentence.weight, "the document")}), '
        f"in it {through}{quoted(word.text)} ({share_of(word.weight, whole)}).</p>"
    )


def paragraph(pieces: Iterable[Fragment]) -> str:
    shown = {"plain": escape, "quote": quoted, "number": number}
    return f'<p class="path">{"".join(shown[piece.kind](piece.text) for piece in pieces)}</p>'


def number(text: str) -> str:
    return f'<span class="number">{escape(text)}</span>'


def quoted(text: str) -> str:
    return f'<q dir="auto">{escape(without_breaks(text))}</q>'


def speaking(explanation: Explanation) -> str:
    """The phrases that pushed most, each way."""
    lines = []
    it = escape(explanation.spoken_of)
    for way, phrases in ways(explanation):
        quoted = ", ".join(
            f'<q dir="auto">{escape(without_breaks(phrase.text))}</q> '
            f'(<span class="number">{escape(signed(phrase.effect or 0))}</span>)'
            for phrase in phrases
        )
        lines += [f'<p class="path">{way} {it}: {quoted}.</p>'] if phrases else []
    return "\n".join(lines)


def otherwise(counterfactual: Counterfactual) -> str:
    quoted = [f'<q dir="auto">{escape(without_breaks(text))}</q>' for text in counterfactual.texts]
    return f'<p class="path">{counterfactual.told(quoted, escape)}</p>'


def some_open(opened: int, sentences: int, words: int) -> str:
    return (
        f'<p class="muted">This document has {words:,} words. {opened:,} of its {sentences:,} sentences, those quoted '
        "above and the heaviest, open for their phrases and words; <code>emhrnn explain --json</code> lists all.</p>"
    )


def share_of(weight: float, whole: str) -> str:
    return f'<span class="number">{escape(percent(weight))}</span> of {whole}'


def joined(labels: Labels) -> str:
    return ", ".join(as_tuple(labels)) or "no label"


TINTS, UNDERLINES = 5, 4
CLASSES_SHOWN = 6  # more classes than this fold away


class _DocumentHtml:
    """Tints and underlines of one document, relative to its strongest phrase and word."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation, self.text, self.shading = explanation, explanation.text, Shading(explanation)
        self.classwise = Classwise(explanation)

    def sentence(self, sentence: Sentence, heaviest: bool, opens: bool) -> str:
        kind, prose = attribute("heaviest" if heaviest else ""), self.prose(sentence.phrases)
        if not opens:
            return f'<li{kind}><div class="row">{self.row(sentence, prose)}</div>'
        last = sentence.phrases[-1].words[-1]
        phrases = "\n".join(self.opened_phrase(phrase, last) for phrase in sentence.phrases)
        return (
            f'<li{kind}><details><summary class="row">{self.row(sentence, prose)}</summary>'
            f'<ol class="phrases inside">{phrases}</ol></details>'
        )

    def row(self, node: Sentence | Phrase, prose: str) -> str:
        long = self.shading.bar(node)
        gauge = f"gauge {drawn(abs(long))}{self.side(long)}"
        number = f'<span class="{gauge}">{escape(self.shading.number(node))}</span>'
        return f"{number}{prose}{'' if self.shading.signed else effect(node)}"

    def side(self, strength: float) -> str:
        return "" if not self.shading.signed else " for" if strength > 0 else " against"

    def opened_phrase(self, phrase: Phrase, sentence_end: Word) -> str:
        if self.shading.signed:
            head, words = EVIDENCE_HEAD, "".join(map(self.evidence_row, phrase.words))
        else:
            largest = max(word.weight for word in phrase.words)
            head = WORDS_HEAD
            words = "".join(word_row(word, word.weight == largest, word is sentence_end) for word in phrase.words)
        return (
            f'<li><details><summary class="row">{self.row(phrase, self.prose([phrase]))}</summary>'
            f'<table class="words">{head}<tbody>{words}</table>{self.classwise(phrase)}</details>'
        )

    def evidence_row(self, word: Word) -> str:
        own = word.effect or 0.0
        kind = f"{drawn(self.shading.part(word))}{self.side(own)}"
        return f'<tr><th>{escape(word.text)}{unknown(word)}<td class="{kind}">{escape(signed(own))}'

    def prose(self, phrases: Sequence[Phrase]) -> str:
        """The original characters, from the first phrase to the last, with `//` between phrases."""
        pieces = [self.phrase(phrases[0])]
        for before, after in pairwise(phrases):
            gap = escape(without_breaks(self.text[before.end : after.start]))
            pieces.append(f'{gap}<span class="break" aria-hidden="true">//</span>{gap and " "}{self.phrase(after)}')
        return f'<span class="prose" dir="auto">{"".join(pieces)}</span>'

    def phrase(self, phrase: Phrase) -> str:
        mark, strength = self.shading.mark(phrase), self.shading.phrase(phrase)
        number = f' data-share="{escape(mark)}"' if mark else ""
        return f'<span class="phrase {tint(strength, self.shading.signed)}"{number}>{self.phrase_words(phrase)}</span>'

    def phrase_words(self, phrase: Phrase) -> str:
        pieces, place = [], phrase.start
        for word in phrase.words:
            pieces.append(escape(without_breaks(self.text[place : word.start])))
            pieces.append(self.word(word, phrase))
            place = word.end
        return "".join(pieces)

    def word(self, word: Word, phrase: Phrase) -> str:
        shown = escape(word.text) if word.known else f"<i>{escape(word.text)}</i>"
        line = level(abs(self.shading.word(word, phrase)), UNDERLINES)
        return f"<u{attribute(f'u{line}' if line > 1 else '')}>{shown}</u>" if line else shown


class Classwise:
    """What a phrase says for each class, as a line under its words; for two classes it would repeat the number."""

    def __init__(self, explanation: Explanation) -> None:
        evidence = explanation.evidence
        shown = [] if evidence is None else [name for name in explanation.classes if name in evidence.classes]
        if len(shown) > CLASSES_SHOWN:
            shown = [name for name, _ in explanation.ranking() if name in shown][:CLASSES_SHOWN]
        self.names = shown if len(shown) > 2 else []
        starts = explanation.starts[explanation.phrase_offsets[:-1]].tolist()
        said = np.zeros((len(starts), 0)) if evidence is None else evidence.only(self.names).phrases
        self.rows = dict(zip(starts, said.tolist(), strict=True))

    def __call__(self, phrase: Phrase) -> str:
        if not self.names:
            return ""
        said = zip(self.names, self.rows[phrase.start], strict=True)
        listed = ", ".join(
            f'{escape(name)} <span class="number">{escape(signed(value))}</span>' for name, value in said
        )
        return f'<p class="classwise muted">By label: {listed}</p>'


def tint(strength: float, is_signed: bool) -> str:
    """The class of the stylesheet for a phrase."""
    kind = "t" if not is_signed else "f" if strength > 0 else "a"
    return f"{kind}{level(abs(strength), TINTS)}"


def effect(node: Sentence | Phrase) -> str:
    return "" if node.effect is None else f'<span class="effect">{escape(signed(node.effect))}</span>'


WORDS_HEAD = (
    "<thead><tr><th>word<th>of the phrase<th>of the document<th>against chance<th>for or against<th>ends a phrase"
)


EVIDENCE_HEAD = "<thead><tr><th>word<th>evidence"


def unknown(word: Word) -> str:
    return "" if word.known else ' <span class="tag">unknown</span>'


def word_row(word: Word, heaviest: bool, sentence_end: bool) -> str:
    pushed = "\u2013" if word.effect is None else signed(word.effect)
    if sentence_end:
        ends = "given"  # phrases end where sentences end, whatever the model says
    else:
        ends = "\u2013" if word.boundary is None else percent(word.boundary)
    return (
        f"<tr{attribute('heaviest' if heaviest else '')}><th>{escape(word.text)}{unknown(word)}"
        f'<td class="{drawn(word.weight)}">{escape(percent(word.weight))}<td>{escape(percent(word.share))}'
        f"<td>\u00d7{word.lift:.1f}<td>{escape(pushed)}<td>{escape(ends)}"
    )


def attribute(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
