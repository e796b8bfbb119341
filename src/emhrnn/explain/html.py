"""Explanations as HTML without script: a page of its own, or the fragment that a notebook shows.

Closed, a document reads like text: a bar per sentence, a tint per phrase, an underline per word, `//` where a phrase
ends. A sentence opens into its phrases, a phrase into its words, each with its numbers.

A long document has hundreds of thousands of words, so what stands once for each word or phrase is written short: bars
are drawn by the stylesheet, and end tags that HTML implies are left out.

Where phrases add up (evidence), tints and bars are signed: blue speaks for the prediction, orange against it.
"""

from collections.abc import Iterable, Sequence

from emhrnn.explain.counterfactual import Counterfactual
from emhrnn.explain.explanation import Explanation, Labels, as_tuple
from emhrnn.explain.headline import Piece, balance, headline, ways
from emhrnn.explain.html_text import CLASSES_SHOWN, Painter, attribute
from emhrnn.explain.inert import escape, without_breaks
from emhrnn.explain.opening import opening
from emhrnn.explain.page import page, percent, signed, stylesheet
from emhrnn.explain.svg import bar


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
    painter, opens = Painter(explanation), opening(explanation)
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


def paragraph(pieces: Iterable[Piece]) -> str:
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
