"""The verdict of a document as HTML, the same on every page: the label and its certainty, the likeliest classes, what
would make it another, and the phrases that count most, in points of probability."""

from collections.abc import Iterable, Sequence

import numpy as np

from emhrnn.explain.charts import bar
from emhrnn.explain.escape import escape, without_breaks
from emhrnn.explain.explanation import (
    Change,
    Explanation,
    Labels,
    Phrase,
    Word,
    as_tuple,
    is_spelled,
    joined,
    largest,
)
from emhrnn.explain.headline import Fragment, headline
from emhrnn.explain.page import percent
from emhrnn.explain.points import SHOWN_POINTS, in_points, points
from emhrnn.shapes import Float

UNSURE, SURE = 0.2, 0.6  # a lead of less probability is unsure, one of this or more is sure
CLASSES_SHOWN, QUOTED = 3, 3  # likeliest classes, and phrases of a sentence; more fold away
OUTSIDE = " \t\n,;:.\u2026-\u2013\u2014\"'()"  # punctuation that says nothing at the end of a phrase
LEAST = 0.1  # of the largest effect: less is not listed

Chances = Float[np.ndarray, " classes"]


def quoted(text: str) -> str:
    """Text of the document in quotes."""
    return f'<q dir="auto">{escape(without_breaks(text))}</q>'


def named(text: str) -> str:
    """A phrase in quotes, without the commas and stops around it."""
    return quoted(text.strip(OUTSIDE) or text)


def number(text: str) -> str:
    """A number that does not break."""
    return f'<span class="number">{escape(text)}</span>'


def paragraph(parts: Iterable[Fragment]) -> str:
    """A line about what decided."""
    shown = {"plain": escape, "quote": quoted, "number": number}
    return f'<p class="path">{"".join(shown[part.kind](part.text) for part in parts)}</p>'


def certainty(chances: Chances, predicted: Labels) -> str:
    """In words, by the lead of the label; of several labels, by the closest of them."""
    one, order = isinstance(predicted, str), np.sort(chances)
    lead = (1.0 if len(order) < 2 else order[-1] - order[-2]) if one else np.abs(2 * order - 1).min()
    return "unsure" if lead < UNSURE else "sure" if lead >= SURE else "fairly sure"


def said(title: str, chances: Chances, predicted: Labels, beside: str = "", kind: str = "") -> str:
    """What was predicted, with what probability, and how sure that is. `beside` is markup after the label."""
    chance = f"{number(percent(float(chances.max())))} " if isinstance(predicted, str) else ""
    sure = certainty(chances, predicted)
    return f"""<div class="said {kind}">
<p class="model">{escape(title)}</p>
<h2 class="prediction">{escape(joined(predicted))}{beside}</h2>
<p class="sure">{chance}<span class="{"unsure" if sure == "unsure" else "muted"}">{sure}</span></p>
</div>"""


def class_tables(names: Sequence[str], chances: Chances, predicted: Labels, before: Chances | None = None) -> str:
    """Probabilities of the likeliest classes; the rest folds away. With those `before` a change, in their order."""
    order = largest(np.asarray(chances if before is None else before, dtype=np.float64), len(names))
    rows = [_class_row(k, names, chances, predicted, before) for k in order]
    table = _class_table(rows[:CLASSES_SHOWN])
    if rest := rows[CLASSES_SHOWN:]:
        told = f"{len(rest)} more class{'es' if len(rest) > 1 else ''}"
        table += f'\n<details><summary class="muted">{told}</summary>{_class_table(rest)}</details>'
    return table


def _class_table(rows: Sequence[str]) -> str:
    return f'<table class="classes" aria-label="Probability of each class"><tbody>{"".join(rows)}</tbody></table>'


def _class_row(k: int, names: Sequence[str], chances: Chances, predicted: Labels, before: Chances | None) -> str:
    chosen = ' class="chosen"' if names[k] in as_tuple(predicted) else ""
    chance, move = float(chances[k]), ""
    if before is not None:
        move = f'<td class="number move">{in_points(chance - float(before[k])) or "0"}</td>'
    return (
        f'<tr{chosen}><th scope="row">{escape(names[k])}</th><td>{bar(chance, "chance")}</td>'
        f'<td class="number">{escape(percent(chance))}</td>{move}</tr>'
    )


def because(explanation: Explanation) -> str:
    """One sentence: without which phrases the label would be another; or how far it falls without those that support it
    most; else what decided."""
    change = explanation.change
    if change is None:
        return paragraph(headline(explanation))
    many, after = len(change.texts) > 1, f"it would be <b>{escape(joined(change.predicted))}</b>"
    if change.predicted != explanation.predicted:
        return f'<p class="path because">Without {_listed(change.texts)} {after}.</p>'
    top = int(explanation.probabilities.argmax())
    name = escape(explanation.classes[top])
    now, before = (number(percent(float(one.probabilities[top]))) for one in (change, explanation))
    whose = "" if isinstance(explanation.predicted, str) else f" {name}"
    less = f", with{whose} {now} instead of {before}" if now != before else ""
    told = f"{_listed(change.texts)} support{'' if many else 's'} {name} most. "
    return f'<p class="path because">{told}Even without {"them" if many else "it"}, {after}{less}.</p>'


def _listed(texts: Sequence[str]) -> str:
    parts, rest = list(map(named, texts[:QUOTED])), len(texts) - QUOTED
    if rest > 0:
        parts.append(f"{rest} more phrase{'s' if rest > 1 else ''}")
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def weights(explanation: Explanation, prefix: str = "") -> str:
    """The phrases that support and oppose the label most, in points; with a `prefix` of the ids of sentences, each is a
    link to its own."""
    parts = []
    for sign, told in ((1, "For"), (-1, "Against")):
        if (some := pushing(explanation, sign)) and explanation.effects is not None:
            rows = "".join(_weight(explanation, prefix, *one) for one in some)
            name = escape(explanation.effects.label)
            parts.append(f'<h3 class="side">{told} {name} <span class="muted">points</span></h3>')
            parts.append(f'<ul class="weights">{rows}</ul>')
    return "\n".join(parts)


def _weight(explanation: Explanation, prefix: str, k: int, text: str, value: float) -> str:
    shown = named(text)
    if prefix:
        sentence = int(np.searchsorted(explanation.sentence_offsets, k, side="right")) - 1
        shown = f'<a href="#{prefix}{sentence}" data-k="{k}">{shown}</a>'
    side = "for" if value > 0 else "against"
    return f'<li>{shown} <span class="number {side}">{escape(in_points(value) or "<1")}</span></li>'


def pushing(explanation: Explanation, sign: int, n: int = 3) -> list[tuple[int, str, float]]:
    """Number, text and points of the phrases that support (or oppose) the label most, without those that hardly count.
    Without phrases, of words; the number is that of their sentence."""
    nodes: Sequence[Phrase | Word] = explanation.phrases if explanation.has_phrases else explanation.words
    values = points(explanation, "phrases" if explanation.has_phrases else "words")
    most = float(np.abs(values).max())
    least = max(LEAST * most, SHOWN_POINTS if most >= SHOWN_POINTS else 1e-9)
    order = [k for k in largest(sign * values, 3 * n) if sign * values[k] >= least and is_spelled(nodes[k])][:n]
    places = order if explanation.has_phrases else np.searchsorted(explanation.phrase_offsets, order, "right") - 1
    return [(int(place), nodes[k].text, float(values[k])) for place, k in zip(places, order, strict=True)]


def warnings(explanation: Explanation) -> str:
    """Why the label may be wrong."""
    return "".join(f'<p class="warning">{escape(text)}</p>' for text in explanation.warnings)


def verdict(explanation: Explanation, title: str = "Predicted", change: Change | None = None, label: str = "") -> str:
    """Label, certainty and classes, beside those after a `change` that a person asked for; `label` is the true one."""
    before, predicted, names = explanation.probabilities, explanation.predicted, explanation.classes
    true = _labelled(explanation, label)
    if change is None:
        return f'<div class="verdicts">{said(title, before, predicted, true)}</div>\n' + class_tables(
            names, before, predicted
        )
    told = f"Without {len(change.phrases)} phrase{'s' if len(change.phrases) > 1 else ''}"
    changed = ' <span class="changed">changed</span>' if change.predicted != predicted else ""
    after = said(told if change.phrases else "Edited", change.probabilities, change.predicted, changed, "without")
    table = class_tables(names, change.probabilities, change.predicted, before)
    return f'<div class="verdicts two">{said("Before", before, predicted, true)}\n{after}</div>\n{table}'


def _labelled(explanation: Explanation, label: str) -> str:
    """The true label, and whether it is the one predicted, where that is known."""
    true = label or ("" if explanation.label is None else joined(explanation.label))
    if not true:
        return ""
    right = explanation.correct if not label else label == joined(explanation.predicted)
    kind, sign = ("right", "\u2713") if right else ("wrong", "\u2717")
    return f' <span class="labelled {kind}">{sign} labelled {escape(true)}</span>'
