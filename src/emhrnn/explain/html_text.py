"""The text of a document as HTML: bars of sentences, tints of phrases, underlines of words; opened, their numbers."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from emhrnn.explain.explanation import Explanation, Phrase, Sentence, Word
from emhrnn.explain.inert import escape, without_breaks
from emhrnn.explain.page import percent, signed
from emhrnn.explain.shading import Shading
from emhrnn.explain.svg import drawn, level

TINTS, UNDERLINES = 5, 4
CLASSES_SHOWN = 6  # more classes than this fold away


class Painter:
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
