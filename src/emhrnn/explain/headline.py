"""What decided, in one or two sentences, for a document that is explained by evidence. Renderings choose the type."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from emhrnn.explain.explanation import Effects, Explanation, Phrase, Sentence, Word, largest
from emhrnn.explain.page import percent, signed

STRANGE = "No word of this text is known to the model"


class Fragment(NamedTuple):
    text: str
    kind: Literal["plain", "quote", "number"] = "plain"


def headline(explanation: Explanation) -> list[Fragment]:
    """The phrase with the largest evidence for the prediction; or that there is none."""
    effects = explanation.effects
    assert effects is not None  # evidence comes with effects
    if not explanation.supported:
        return _unsupported(explanation, effects)
    sentence, phrase, word = explanation.decisive_path()
    it = explanation.spoken_of
    pieces = [Fragment(f"{STRANGE}; do not trust the label. ")] if _strange(explanation) else []
    pieces += [Fragment("Decided most by " if it == "it" else f"Most for {it}: "), *_quoted(phrase.text, phrase.effect)]
    if len(explanation.sentences) > 1:
        pieces.append(Fragment(f" in sentence {sentence.index + 1}"))
    if sum(map(_spelled, phrase.words)) > 1 and _spelled(word) and (word.effect or 0) > 0:
        pieces += [Fragment(", in it "), *_quoted(word.text, word.effect)]
    return [*pieces, Fragment(".")]


def _unsupported(explanation: Explanation, effects: Effects) -> list[Fragment]:
    label = Fragment(effects.label)
    prior = [Fragment(" ("), Fragment(signed(effects.prior or 0), "number"), Fragment(").")]
    if _strange(explanation):
        first = STRANGE
    elif not effects.phrases.any():
        first = "No phrase of this text is evidence for or against it"
    else:
        first = f"No phrase speaks for {explanation.spoken_of}"
    return [Fragment(f"{first}; the label is by the prior of "), label, *prior]


def _strange(explanation: Explanation) -> bool:
    return not any(word.known and _spelled(word) for word in explanation.words)


def _spelled(word: Word) -> bool:
    """Marks are no words here."""
    return any(map(str.isalnum, word.text))


def _quoted(text: str, effect: float | None) -> list[Fragment]:
    return [Fragment(text, "quote"), Fragment(" ("), Fragment(signed(effect or 0), "number"), Fragment(")")]


def ways(explanation: Explanation) -> Iterator[tuple[str, list[Phrase]]]:
    """The phrases that speak most, each way; those that the headline names are not said again."""
    supporting = explanation.supporting(3 if explanation.evidence is None else 4)
    if explanation.evidence is None:
        yield "For", supporting
    else:
        yield "Also for", supporting[1:]
    yield "Against", explanation.opposing()


def balance(explanation: Explanation) -> list[Fragment]:
    """That the effects add up to the prediction."""
    effects, predicted = explanation.effects, explanation.predicted
    assert effects is not None
    several = isinstance(predicted, str) and len(explanation.classes) > 2
    against = " against the mean of the other labels" if several else ""
    return [
        Fragment("Prior "), Fragment(signed(effects.prior or 0), "number"),
        Fragment(", all phrases "), Fragment(signed(float(effects.sentences.sum())), "number"),
        Fragment(": together "), Fragment(signed(effects.total), "number"),
        Fragment(f" log-odds{against}, those of the probabilities."),
    ]  # fmt: skip


NUMBERED = 0.02  # phrases with less than 2 % of the document carry no number: it would say nothing


class Shading:
    """Marks of one document."""

    def __init__(self, explanation: Explanation) -> None:
        self.signed = explanation.evidence is not None
        effects = explanation.effects if self.signed else None
        if effects is None:
            sizes = (np.ones(1), explanation.phrase_shares, explanation.word_shares)
        else:
            sizes = (effects.sentences, effects.phrases, effects.words)
        self._sentence, self._phrase, self._word = map(_largest, sizes)

    def phrase(self, phrase: Phrase) -> float:
        return ((phrase.effect or 0.0) if self.signed else phrase.share) / self._phrase

    def word(self, word: Word, phrase: Phrase) -> float:
        """By evidence, as far as it speaks the same way as its phrase, and no more than that: words that cancel each
        other are not marked."""
        if not self.signed:
            return word.share / self._word
        own, whole = word.effect or 0.0, phrase.effect or 0.0
        return float(np.copysign(min(abs(own), abs(whole)), own)) / self._word if own * whole > 0 else 0.0

    def part(self, word: Word) -> float:
        """The length of its bar: by attention its weight in the phrase, by evidence its absolute effect."""
        return abs(word.effect or 0.0) / self._word if self.signed else word.weight

    def bar(self, node: Sentence | Phrase) -> float:
        """By attention, the weight among its siblings."""
        if not self.signed:
            return node.weight
        return (node.effect or 0.0) / (self._sentence if isinstance(node, Sentence) else self._phrase)

    def number(self, node: Sentence | Phrase) -> str:
        """What stands beside its bar."""
        return signed(node.effect or 0.0) if self.signed else percent(node.weight)

    def mark(self, phrase: Phrase) -> str:
        """What stands at a phrase in the text; empty where that would say nothing."""
        if phrase.share < NUMBERED:
            return ""
        return signed(phrase.effect or 0.0) if self.signed else percent(phrase.share)


def _largest(values: Float64[np.ndarray, " n"]) -> float:
    return float(np.abs(values).max()) or 1.0


WORDS = 20_000


def opening(explanation: Explanation, words: int = WORDS) -> Bool[np.ndarray, " sentences"]:
    """All, or those that the summary quotes and then the heaviest, as long as they have no more words together."""
    lengths = np.diff(explanation.phrase_offsets[explanation.sentence_offsets])
    opens = np.ones(len(lengths), dtype=bool)
    if lengths.sum() <= words:
        return opens
    order = np.array(list(dict.fromkeys([*_quoted_sentences(explanation), *largest(explanation.gamma, len(lengths))])))
    opens[order] = np.cumsum(lengths[order]) <= words
    return opens


def _quoted_sentences(explanation: Explanation) -> list[int]:
    spoken = [phrase for _, phrases in ways(explanation) for phrase in phrases]
    starts = explanation.starts[explanation.phrase_offsets[explanation.sentence_offsets[:-1]]]
    held = np.searchsorted(starts, [phrase.start for phrase in spoken], side="right") - 1
    decisive = [explanation.decisive_path().sentence.index] if explanation.supported else []
    return [*decisive, *held.tolist()]
