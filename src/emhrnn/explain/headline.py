"""What every rendering says and marks, by the signed effects of an explanation: the sentence about what decided, the
strength of each mark, and the sentences of a long page that open. Attention is not used, except for the one line that
a reader asks for.
"""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from emhrnn.explain.arrays import Effects
from emhrnn.explain.explanation import Explanation, Node, Phrase, Sentence, Word, is_spelled
from emhrnn.explain.page import percent, signed
from emhrnn.shapes import Bool

UNKNOWN_WORDS = "No word of this text is known to the model"
NOTES = {
    "evidence": "+ supports the label, \u2212 opposes it, in log-odds. Words add up to phrases, phrases to sentences, "
    "and sentences with the prior to the log-odds of the probabilities.",
    "removal": "+ supports the label, \u2212 opposes it: by how much its log-odds fall or rise when the model reads "
    "the text without this part.",
    "owen": "+ supports the label, \u2212 opposes it: the part's fair share of the log-odds (Owen value). Words add up "
    "to phrases, phrases to sentences, and sentences with the prior, a text without words, to the log-odds.",
    "estimate": "+ supports the label, \u2212 opposes it: about how much its log-odds would fall or rise without this "
    "part (estimated).",
}
TINY = 1e-12
NUMBERED = 0.05  # of the largest effect: less is not worth a number
OPEN_WORDS = 20_000  # of the sentences of a page that open


class Fragment(NamedTuple):
    """A part of a sentence for people. A rendering sets quotes and numbers in its own type."""

    text: str
    kind: Literal["plain", "quote", "number"] = "plain"


def headline(explanation: Explanation) -> list[Fragment]:
    """What supports the prediction most; or that nothing does."""
    effects = explanation.effects
    if effects is None:
        return [Fragment("What decided is not known: this explanation has no effects. Explain the text again.")]
    path = explanation.decisive_path()
    if path is None:
        return _unsupported(explanation, effects)
    sentence, phrase, word = path
    it = explanation.subject
    parts = [Fragment("Decided most by " if it == "it" else f"Most for {it}: ")]
    parts += _quoted(phrase if explanation.has_phrases else word)
    if len(explanation.sentences) > 1:
        parts.append(Fragment(f" in sentence {sentence.index + 1}"))
    several = explanation.has_phrases and sum(map(is_spelled, phrase.words)) > 1
    if several and is_spelled(word) and (word.effect or 0.0) > 0:
        parts += [Fragment(", in it "), *_quoted(word)]
    return [*parts, Fragment("."), *_without(explanation, effects, phrase)]


def _without(explanation: Explanation, effects: Effects, phrase: Phrase) -> list[Fragment]:
    """What the model says of the text without the phrase that decided, if it was run to see."""
    falls = {explanation.phrases[k].start: fall for k, fall in (effects.left_out or {}).items()}
    if phrase.start not in falls:
        return []
    p = float(explanation.probabilities[explanation.classes.index(effects.label)])
    odds = np.log(max(p, TINY)) - np.log(max(1 - p, TINY)) - falls[phrase.start]
    name, before = _named(explanation, effects), percent(p)
    after = percent(float(1 / (1 + np.exp(-odds))))
    if after == before:  # both are nearly certain
        fall = Fragment(signed(-falls[phrase.start]), "number")
        return [Fragment(f" Without it, the log-odds of {name} change by "), fall, Fragment(".")]
    stronger = any((other.effect or 0.0) > (phrase.effect or 0.0) for other in explanation.supporting(1))
    return [
        Fragment(f" Without it, {name} has "), Fragment(after, "number"),
        Fragment(" instead of "), Fragment(before, "number"),
        Fragment("; no other phrase that was left out changes it more." if stronger else "."),
    ]  # fmt: skip


def _named(explanation: Explanation, effects: Effects) -> str:
    return "the label" if explanation.subject == "it" else effects.label


def headline_text(explanation: Explanation) -> str:
    """`headline` as plain text."""
    return "".join(f'"{part.text}"' if part.kind == "quote" else part.text for part in headline(explanation))


def _unsupported(explanation: Explanation, effects: Effects) -> list[Fragment]:
    it, unit = explanation.subject, "phrase" if explanation.has_phrases else "word"
    if not any(word.known and is_spelled(word) for word in explanation.words):
        first = UNKNOWN_WORDS
    elif not effects.phrases.any():
        first = f"No {unit} of this text supports or opposes {it}"
    else:
        first = f"No {unit} of this text supports {it}"
    if effects.prior is None:
        return [Fragment(f"{first}; do not trust the label.")]
    prior = [Fragment(effects.label, "quote"), Fragment(" ("), Fragment(signed(effects.prior), "number"), Fragment(")")]
    return [Fragment(f"{first}; the label follows from the prior of "), *prior, Fragment(".")]


def _quoted(node: Phrase | Word, effect: float | None = None) -> list[Fragment]:
    number = signed(node.effect or 0.0) if effect is None else signed(effect)
    return [Fragment(node.text, "quote"), Fragment(" ("), Fragment(number, "number"), Fragment(")")]


def listed(title: str, nodes: Iterable[tuple[Phrase | Word, float]]) -> list[Fragment]:
    """A line of nodes with their effects."""
    parts = [part for node, effect in nodes for part in (Fragment(", "), *_quoted(node, effect))]
    return [Fragment(f"{title}: "), *parts[1:], Fragment(".")]


def added_up(prior: float, phrases: float, of: str) -> list[Fragment]:
    """That the prior and all phrases are the log-odds, and `of` what."""
    return [
        Fragment("The prior "), Fragment(signed(prior), "number"),
        Fragment(" and all phrases "), Fragment(signed(phrases), "number"),
        Fragment(" add up to "), Fragment(signed(prior + phrases), "number"), Fragment(f", the log-odds {of}."),
    ]  # fmt: skip


def sides(explanation: Explanation) -> Iterator[list[Fragment]]:
    """The phrases, or words, that support and oppose the prediction most, a line each; without what the headline
    names, and without those that hardly count."""
    shading, path = Shading(explanation), explanation.decisive_path()
    named = None if path is None else path.phrase if explanation.has_phrases else path.word
    lines = {
        "Also for": [node for node in explanation.supporting(4) if node != named][:3],
        "Against": explanation.opposing(),
    }
    for side, some in lines.items():
        nodes = [node for node in some if abs(shading.bar(node)) >= NUMBERED]
        if nodes:
            yield listed(f"{side} {explanation.subject}", ((node, node.effect or 0.0) for node in nodes))


def balance(explanation: Explanation) -> list[Fragment]:
    """That exact evidence adds up to the prediction; empty for other effects."""
    effects, predicted = explanation.effects, explanation.predicted
    if effects is None or effects.prior is None:
        return []
    several = effects.by == "evidence" and isinstance(predicted, str) and len(explanation.classes) > 2
    against = " against the mean of the other labels" if several else ""
    return added_up(effects.prior, float(effects.sentences.sum()), f"of {_named(explanation, effects)}{against}")


def note(explanation: Explanation) -> str:
    """What the numbers mean."""
    text = "" if explanation.decided_by is None else NOTES[explanation.decided_by]
    if explanation.decided_by == "removal" and explanation.has_phrases:
        return f"{text} Effects of single words are estimated."
    if explanation.effects is not None and explanation.effects.error:
        return f"{text} Sampled; the standard error of a phrase is {explanation.effects.error:.2f} or less."
    return text


def attention_line(explanation: Explanation) -> list[Fragment]:
    """Where the model looked, for those who ask."""
    if explanation.evidence is not None:
        return [Fragment("This model has no attention.")]
    sentence, phrase, word = explanation.attention_path()
    parts = [Fragment(f"Attention, where the model looked, was highest on sentence {sentence.index + 1} (")]
    parts += [Fragment(percent(sentence.weight), "number"), Fragment("), in it on ")]
    for node in (phrase, word) if len(sentence.phrases) > 1 else (word,):
        parts += [Fragment(node.text, "quote"), Fragment(" ("), Fragment(percent(node.weight), "number"), Fragment(")")]
        parts.append(Fragment(", in that on " if node is phrase else ". It does not say what decided."))
    return parts


class Shading:
    """How strongly each node of a document is marked: positive for what supports the prediction, negative for what
    opposes it, 1 for the largest effect of its level in the document."""

    def __init__(self, explanation: Explanation) -> None:
        self.has_phrases = explanation.has_phrases
        effects = explanation.effects
        levels = (np.zeros(1),) * 3 if effects is None else (effects.sentences, effects.phrases, effects.words)
        self._sentence, self._phrase, self._word = (float(np.abs(values).max()) or 1.0 for values in levels)

    def phrase(self, phrase: Phrase) -> float:
        """Its tint. Without phrases, words are tinted."""
        return (phrase.effect or 0.0) / self._phrase if self.has_phrases else 0.0

    def word(self, word: Word, phrase: Phrase) -> float:
        """Its underline. In a phrase, as far as it pushes the same way as its phrase, and no more than that: words that
        cancel each other are not marked."""
        own, whole = word.effect or 0.0, phrase.effect or 0.0
        if not self.has_phrases:
            return own / self._word
        return float(np.copysign(min(abs(own), abs(whole)), own)) / self._word if own * whole > 0 else 0.0

    def bar(self, node: Node) -> float:
        """The length of its bar."""
        whole = {Sentence: self._sentence, Phrase: self._phrase, Word: self._word}[type(node)]
        return (node.effect or 0.0) / whole


def open_sentences(explanation: Explanation, words: int = OPEN_WORDS) -> Bool[np.ndarray, " sentences"]:
    """Which sentences of a page open: all, or of a document with more words those that the summary quotes and then
    those with the largest effects, as long as they have no more words together. If all opened, a browser would build
    millions of elements for a document of 200,000 words before it shows the first."""
    lengths = np.diff(explanation.phrase_offsets[explanation.sentence_offsets])
    opens = np.ones(len(lengths), dtype=bool)
    if lengths.sum() <= words:
        return opens
    strongest = [sentence.index for sentence in explanation.top_sentences(len(lengths))]
    order = np.array(list(dict.fromkeys([*_quoted_sentences(explanation), *strongest])))
    opens[order] = np.cumsum(lengths[order]) <= words
    return opens


def _quoted_sentences(explanation: Explanation) -> list[int]:
    path = explanation.decisive_path()
    starts = explanation.starts[explanation.phrase_offsets[explanation.sentence_offsets[:-1]]]
    quoted = [*explanation.supporting(4), *explanation.opposing()]
    held = np.searchsorted(starts, [phrase.start for phrase in quoted], side="right") - 1
    return [*([] if path is None else [path.sentence.index]), *held.tolist()]
