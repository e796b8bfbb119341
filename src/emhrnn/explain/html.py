"""Explanations as HTML without script: a page of its own, or the fragment that a notebook shows.

Closed, a document reads like text: a bar per sentence, a tint per phrase, an underline per word, `//` where a phrase
ends. A sentence opens into its phrases, a phrase into its words, each with its numbers.

A long document has hundreds of thousands of words, so what stands once for each word or phrase is written short: bars
are drawn by the stylesheet, and end tags that HTML implies are left out.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from emhrnn.explain.counterfactual import Counterfactual
from emhrnn.explain.explanation import Explanation, Labels, Phrase, Sentence, Word, as_tuple
from emhrnn.explain.inert import escape, without_breaks
from emhrnn.explain.opening import opening
from emhrnn.explain.page import page, percent, signed, stylesheet
from emhrnn.explain.svg import bar, drawn, level

TINTS, UNDERLINES = 5, 4
CLASSES_SHOWN = 6  # more classes than this fold away
NUMBERED = 0.02  # phrases with less than 2 % of the document carry no number: it would say nothing


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
    return page(title, f"<h1>{escape(title)}</h1>\n{LEGEND}\n{sections}")


def html_fragment(explanation: Explanation) -> str:
    """For a notebook: the stylesheet only touches what is inside."""
    return f'<div class="emhrnn"><style>{stylesheet()}</style>\n{LEGEND}\n{html_section(explanation)}</div>'


LEGEND = """<p class="muted">Bar: weight of the sentence, or of the phrase in it. Tint: share of the phrase.
Underline: share of the word. <span class="break">//</span> ends a phrase. Italic: a word that the model does not know.
Open a sentence for its phrases, a phrase for its words.
+ speaks for the prediction, \u2212 against it: about how far its log-odds would fall without this part.</p>
<p class="options"><label><input type="checkbox" class="numbers"> show numbers</label>
<label><input type="checkbox" class="plain"> without colour</label></p>"""


def html_section(explanation: Explanation, counterfactual: Counterfactual | None = None) -> str:
    """One explanation, for a page that carries the stylesheet."""
    heaviest = explanation.decisive_path().sentence.index
    painter, opens = Painter(explanation), opening(explanation)
    rows = "\n".join(
        painter.sentence(sentence, sentence.index == heaviest, opened)
        for sentence, opened in zip(explanation.sentences, opens.tolist(), strict=True)
    )
    return f"""<article class="card">
<header>
<p class="model">{escape(explanation.model)}</p>
{prediction(explanation)}
{class_tables(explanation)}
{decisive_path(explanation)}
{speaking(explanation)}
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
    sentence, phrase, word = explanation.decisive_path()
    through, whole = "", "the sentence"
    if len(sentence.phrases) > 1:  # else the phrase is the sentence, and models without phrases have no other
        through, whole = f"{quoted(phrase.text)} ({share_of(phrase.weight, whole)}), in that ", "the phrase"
    return (
        f'<p class="path">Decided most by sentence {sentence.index + 1} ({share_of(sentence.weight, "the document")}), '
        f"in it {through}{quoted(word.text)} ({share_of(word.weight, whole)}).</p>"
    )


def quoted(text: str) -> str:
    return f'<q dir="auto">{escape(without_breaks(text))}</q>'


def speaking(explanation: Explanation) -> str:
    """The phrases that pushed most, each way."""
    lines = []
    it = escape(explanation.spoken_of)
    for way, phrases in (("For", explanation.supporting()), ("Against", explanation.opposing())):
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


class Painter:
    """Tints and underlines of one document, relative to its heaviest phrase and word."""

    def __init__(self, explanation: Explanation) -> None:
        self.text = explanation.text
        self.largest_phrase = float(explanation.phrase_shares.max()) or 1.0
        self.largest_word = float(explanation.word_shares.max()) or 1.0

    def sentence(self, sentence: Sentence, heaviest: bool, opens: bool) -> str:
        kind, prose = attribute("heaviest" if heaviest else ""), self.prose(sentence.phrases)
        if not opens:
            return f'<li{kind}><div class="row">{row(sentence, prose)}</div>'
        last = sentence.phrases[-1].words[-1]
        phrases = "\n".join(self.opened_phrase(phrase, last) for phrase in sentence.phrases)
        return (
            f'<li{kind}><details><summary class="row">{row(sentence, prose)}</summary>'
            f'<ol class="phrases inside">{phrases}</ol></details>'
        )

    def opened_phrase(self, phrase: Phrase, sentence_end: Word) -> str:
        largest = max(word.weight for word in phrase.words)
        words = "".join(word_row(word, word.weight == largest, word is sentence_end) for word in phrase.words)
        return (
            f'<li><details><summary class="row">{row(phrase, self.prose([phrase]))}</summary>'
            f'<table class="words">{WORDS_HEAD}<tbody>{words}</table></details>'
        )

    def prose(self, phrases: Sequence[Phrase]) -> str:
        """The original characters, from the first phrase to the last, with `//` between phrases."""
        pieces = [self.phrase(phrases[0])]
        for before, after in pairwise(phrases):
            gap = escape(without_breaks(self.text[before.end : after.start]))
            pieces.append(f'{gap}<span class="break" aria-hidden="true">//</span>{gap and " "}{self.phrase(after)}')
        return f'<span class="prose" dir="auto">{"".join(pieces)}</span>'

    def phrase(self, phrase: Phrase) -> str:
        number = f' data-share="{escape(percent(phrase.share))}"' if phrase.share >= NUMBERED else ""
        tint = level(phrase.share / self.largest_phrase, TINTS)
        return f'<span class="phrase t{tint}"{number}>{self.phrase_words(phrase)}</span>'

    def phrase_words(self, phrase: Phrase) -> str:
        pieces, place = [], phrase.start
        for word in phrase.words:
            pieces.append(escape(without_breaks(self.text[place : word.start])))
            pieces.append(self.word(word))
            place = word.end
        return "".join(pieces)

    def word(self, word: Word) -> str:
        shown = escape(word.text) if word.known else f"<i>{escape(word.text)}</i>"
        line = level(word.share / self.largest_word, UNDERLINES)
        return f"<u{attribute(f'u{line}' if line > 1 else '')}>{shown}</u>" if line else shown


def row(node: Sentence | Phrase, prose: str) -> str:
    return f'<span class="gauge {drawn(node.weight)}">{escape(percent(node.weight))}</span>{prose}{effect(node)}'


def effect(node: Sentence | Phrase) -> str:
    return "" if node.effect is None else f'<span class="effect">{escape(signed(node.effect))}</span>'


WORDS_HEAD = (
    "<thead><tr><th>word<th>of the phrase<th>of the document<th>against chance<th>for or against<th>ends a phrase"
)


def word_row(word: Word, heaviest: bool, sentence_end: bool) -> str:
    unknown = "" if word.known else ' <span class="tag">unknown</span>'
    pushed = "\u2013" if word.effect is None else signed(word.effect)
    if sentence_end:
        ends = "given"  # phrases end where sentences end, whatever the model says
    else:
        ends = "\u2013" if word.boundary is None else percent(word.boundary)
    return (
        f"<tr{attribute('heaviest' if heaviest else '')}><th>{escape(word.text)}{unknown}"
        f'<td class="{drawn(word.weight)}">{escape(percent(word.weight))}<td>{escape(percent(word.share))}'
        f"<td>\u00d7{word.lift:.1f}<td>{escape(pushed)}<td>{escape(ends)}"
    )


def attribute(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def joined(labels: Labels) -> str:
    return ", ".join(as_tuple(labels)) or "no label"
