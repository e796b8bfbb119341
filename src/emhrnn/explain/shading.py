"""How strongly each node of a document is marked, for every rendering: tints, underlines, bars and numbers.

By attention, a mark is a share of the document. By evidence it is signed: positive for what speaks for the prediction,
negative for what speaks against it; 1 is the strongest of its kind in the document.
"""

import numpy as np
from jaxtyping import Float64

from emhrnn.explain.explanation import Explanation, Phrase, Sentence, Word
from emhrnn.explain.page import percent, signed

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
