"""Why a document was classified as it was, as data: document > sentence > phrase > word.

What decided is a matter of effects. A node's `effect` is signed: how far the log-odds of the predicted class would fall
without it. `Effects.by` says where effects come from:

    evidence   the model's own evidence for each phrase, exact: words, phrases and sentences add up to the prediction
    removal    phrases and sentences (or words, for a model without phrases) were really left out (explain/removal.py)
    owen       fair shares of the prediction, which add up to it, too; on request (explain/owen.py)
    estimate   to first order, from one backward pass (paper/explanations/networks.py)

Attention says where a model looked, not what decided. It is kept as data. A node's `weight` is its attention among its
siblings, and its `share` is the product of the weights down to it, so the shares of all words (or of all phrases, or of
all sentences) sum to 1 over the document. `lift` is the weight divided by chance (1 / number of siblings).

    document   v = sum_i gamma_i h3_i      gamma  sums to 1 over the sentences of the document
    sentence   s = sum_k beta_k  h2_k      beta   sums to 1 over the phrases of a sentence
    phrase     q = sum_t alpha_t h1_t      alpha  sums to 1 over the words of a phrase

A model of phrase evidence has no attention: its weights are shares of absolute effects, and `evidence` has what every
phrase adds for every class.

`Explanation` keeps flat arrays plus offsets, which cost nothing to make; the tree of `Sentence`, `Phrase` and `Word` is
built when somebody asks for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from emhrnn.explain.arrays import Attention, Effects, EffectsBy, PhraseEvidence, nearby, shares
from emhrnn.shapes import Bool, Float64, Int64

PRINTED_WIDTH = 100

Labels = str | tuple[str, ...]  # one label, or the labels of a multi-label document


@dataclass(frozen=True, eq=False)
class Change:
    """The prediction after a change: without the `phrases`, or of an edited text."""

    phrases: tuple[int, ...]
    texts: tuple[str, ...]
    probabilities: Float64[np.ndarray, " classes"]
    predicted: Labels


@dataclass(frozen=True, slots=True)
class Node:
    """A word, a phrase or a sentence."""

    text: str
    start: int
    end: int
    index: int  # among its siblings
    weight: float
    share: float
    lift: float
    effect: float | None


@dataclass(frozen=True, slots=True)
class Word(Node):
    """`boundary` is pi, the probability that a phrase ends here; None where the model has no latent boundaries."""

    known: bool
    boundary: float | None


@dataclass(frozen=True, slots=True)
class Phrase(Node):
    """A run of words that the model reads as one."""

    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Sentence(Node):
    """A sentence and its phrases."""

    phrases: tuple[Phrase, ...]


class DecisivePath(NamedTuple):
    """A sentence, a phrase of it, and a word of that."""

    sentence: Sentence
    phrase: Phrase
    word: Word


@dataclass(eq=False)  # not frozen, nor are its effects: freezing costs more than making them
class Explanation:
    """One document, its prediction and why. Spans count characters of the original `text`."""

    text: str
    classes: tuple[str, ...]
    probabilities: Float64[np.ndarray, " classes"]
    predicted: Labels
    label: Labels | None
    model: str
    starts: Int64[np.ndarray, " words"]
    ends: Int64[np.ndarray, " words"]
    phrase_offsets: Int64[np.ndarray, " phrases_plus_1"]  # phrase k is words[offsets[k] : offsets[k + 1]]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]  # sentence i is phrases[offsets[i] : offsets[i + 1]]
    known: Bool[np.ndarray, " words"]
    pi: Float64[np.ndarray, " words"] | None = None
    attention: Attention | None = None  # None for a model without attention
    effects: Effects | None = None  # None where the model's are not known
    evidence: PhraseEvidence | None = None  # for every class, of models whose phrases add up to the logits
    warnings: tuple[str, ...] = ()  # why the label may be wrong: a text unlike those of training (explain/build.py)
    change: Change | None = None  # without the phrases that decided, on request (explain/counterfactual.py)

    # ---- weights and shares ----------------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> Attention:
        """Attention; for a model without it, shares of absolute effects."""
        if self.attention is not None:
            return self.attention
        if self.effects is None:
            words, phrases = np.zeros(len(self.known)), np.zeros(len(self.phrase_offsets) - 1)
        else:
            words, phrases = np.abs(self.effects.words), np.abs(self.effects.phrases)
        sizes = np.add.reduceat(phrases, self.sentence_offsets[:-1])
        return Attention(
            shares(words, self.phrase_offsets),
            shares(phrases, self.sentence_offsets),
            shares(sizes, np.array([0, len(sizes)])),
        )

    @cached_property
    def phrase_shares(self) -> Float64[np.ndarray, " phrases"]:
        """The part of each phrase in the document: its weight times that of its sentence."""
        parts: np.ndarray = np.repeat(self.weights.gamma, np.diff(self.sentence_offsets)) * self.weights.beta
        return parts

    @cached_property
    def word_shares(self) -> Float64[np.ndarray, " words"]:
        """The part of each word in the document."""
        parts: np.ndarray = np.repeat(self.phrase_shares, np.diff(self.phrase_offsets)) * self.weights.alpha
        return parts

    @property
    def nearby(self) -> Float64[np.ndarray, " words"] | None:
        """The support for the prediction around each word (explain/arrays.py); None where effects are not known."""
        if self.effects is None:
            return None
        words = np.diff(self.phrase_offsets[self.sentence_offsets])  # of each sentence
        return nearby(self.effects.words, np.repeat(np.arange(len(words)), words))

    # ---- the tree ------------------------------------------------------------------------------------------------

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """All words in reading order."""
        effects = None if self.effects is None else self.effects.words
        boundaries = [None] * len(self.known) if self.pi is None else self.pi.tolist()
        columns = self._columns(
            self.starts, self.ends, self.phrase_offsets, self.weights.alpha, self.word_shares, effects,
            self.known.tolist(), boundaries,
        )  # fmt: skip
        return tuple(map(Word, *columns))

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """All phrases in reading order."""
        effects = None if self.effects is None else self.effects.phrases
        starts, ends = self.starts[self.phrase_offsets[:-1]], self.ends[self.phrase_offsets[1:] - 1]
        words = [self.words[first:last] for first, last in pairwise(self.phrase_offsets.tolist())]
        columns = self._columns(
            starts, ends, self.sentence_offsets, self.weights.beta, self.phrase_shares, effects, words
        )
        return tuple(map(Phrase, *columns))

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        effects = None if self.effects is None else self.effects.sentences
        first = self.phrase_offsets[self.sentence_offsets]  # words of the sentences
        starts, ends = self.starts[first[:-1]], self.ends[first[1:] - 1]
        phrases = [self.phrases[first:last] for first, last in pairwise(self.sentence_offsets.tolist())]
        gamma = self.weights.gamma
        columns = self._columns(starts, ends, np.array([0, len(gamma)]), gamma, gamma, effects, phrases)
        return tuple(map(Sentence, *columns))

    def _columns(
        self,
        starts: Int64[np.ndarray, " n"],
        ends: Int64[np.ndarray, " n"],
        siblings: Int64[np.ndarray, " parents_plus_1"],  # offsets
        weights: Float64[np.ndarray, " n"],
        shares: Float64[np.ndarray, " n"],
        effects: Float64[np.ndarray, " n"] | None,
        *more: list[Any],
    ) -> list[list[Any]]:
        """The fields of the nodes of a level, each as a list: those that all nodes have, and more."""
        counts = np.diff(siblings)
        index = np.arange(len(weights)) - np.repeat(siblings[:-1], counts)
        lifts = weights * np.repeat(counts, counts)
        columns = [column.tolist() for column in (starts, ends, index, weights, shares, lifts)]
        texts = [self.text[start:end] for start, end in zip(*columns[:2], strict=True)]
        return [texts, *columns, [None] * len(weights) if effects is None else effects.tolist(), *more]

    # ---- the questions people ask --------------------------------------------------------------------------------

    @property
    def correct(self) -> bool | None:
        """Whether the prediction is the true label; None where the true label is not known."""
        return None if self.label is None else set(as_tuple(self.predicted)) == set(as_tuple(self.label))

    @property
    def decided_by(self) -> EffectsBy | None:
        """Where the effects come from that `decisive_path` and the renderings go by; None where there are none."""
        return None if self.effects is None else self.effects.by

    @property
    def has_phrases(self) -> bool:
        """False for a model that reads sentences of words: there each sentence counts as one phrase."""
        return self.pi is not None or self.evidence is not None or len(self.phrase_offsets) > len(self.sentence_offsets)

    def ranking(self) -> list[tuple[str, float]]:
        """Classes with their probabilities, the most probable first."""
        order = np.argsort(-self.probabilities, kind="stable")
        return [(self.classes[c], float(self.probabilities[c])) for c in order]

    def top_words(self, n: int = 5) -> list[Word]:
        """The n words with the largest effects, for or against; the earlier word wins a tie."""
        return [self.words[t] for t in largest(self._strengths("words"), n)]

    def top_phrases(self, n: int = 5) -> list[Phrase]:
        """The n phrases with the largest effects, for or against."""
        return [self.phrases[k] for k in largest(self._strengths("phrases"), n)]

    def top_sentences(self, n: int = 5) -> list[Sentence]:
        """The n sentences with the largest effects, for or against."""
        return [self.sentences[i] for i in largest(self._strengths("sentences"), n)]

    def _strengths(self, level: str) -> Float64[np.ndarray, " n"]:
        """Absolute effects; zero where they are not known."""
        if self.effects is None:
            return np.zeros(len(getattr(self, level)))
        strengths: np.ndarray = np.abs(getattr(self.effects, level))
        return strengths

    @property
    def subject(self) -> str:
        """What phrases support or oppose: the prediction; of several labels, or none, the likeliest, or the one that
        was asked for."""
        return "it" if self.effects is None or as_tuple(self.predicted) == (self.effects.label,) else self.effects.label

    def supporting(self, n: int = 3) -> list[Phrase | Word]:
        """The n phrases that support the predicted class most, the strongest first; fewer where fewer do. Punctuation
        alone counts only where no other phrase does. Of a model without phrases, words."""
        return self._pushing(n, 1)

    def opposing(self, n: int = 3) -> list[Phrase | Word]:
        """The n phrases that oppose the predicted class most, likewise."""
        return self._pushing(n, -1)

    def _pushing(self, n: int, sign: int) -> list[Phrase | Word]:
        if self.effects is None:
            return []
        nodes: Sequence[Phrase | Word] = self.phrases if self.has_phrases else self.words
        effects = self.effects.phrases if self.has_phrases else self.effects.words
        return [node for node, _ in strongest(nodes, effects, sign, n)]

    def decisive_path(self) -> DecisivePath | None:
        """What decided most: the phrase that supports the prediction most, its sentence, and its word that does. Where
        strong phrases were really left out (`Effects.left_out`), the one without which the prediction falls most. For a
        model without phrases, the word that supports the prediction most. None where nothing supports it."""
        falls = None if self.effects is None else self.effects.left_out
        some = {k: fall for k, fall in (falls or {}).items() if fall > 0 and is_spelled(self.phrases[k])}
        for node in [self.phrases[max(some, key=lambda k: some[k])]] if some else self.supporting(1):
            starts = self.starts[self.phrase_offsets[self.sentence_offsets[:-1]]]
            sentence = self.sentences[int(np.searchsorted(starts, node.start, side="right")) - 1]
            if isinstance(node, Word):
                return DecisivePath(sentence, sentence.phrases[0], node)
            return DecisivePath(sentence, node, max(node.words, key=_support))
        return None

    def attention_path(self) -> DecisivePath:
        """Where the model looked most, the paper's descent: the heaviest sentence, its heaviest phrase, that phrase's
        heaviest word. Where words and phrases share one softmax (MHS-RNN), the heaviest sentence and at once its
        heaviest word."""
        i, direct = int(np.argmax(self.weights.gamma)), self.weights.direct
        sentence = self.sentences[i]
        if direct is not None:
            first, last = self.phrase_offsets[self.sentence_offsets[[i, i + 1]]].tolist()
            t = first + int(np.argmax(direct[first:last]))
            k = int(np.searchsorted(self.phrase_offsets, t, side="right")) - 1
            return DecisivePath(sentence, self.phrases[k], self.words[t])
        phrase = max(sentence.phrases, key=lambda node: node.weight)
        return DecisivePath(sentence, phrase, max(phrase.words, key=lambda node: node.weight))

    # ---- renderings ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain JSON values."""
        from emhrnn.explain.json import explanation_to_dict

        return explanation_to_dict(self)

    def __str__(self) -> str:
        """What `print` shows: the terminal's view, without colour."""
        from io import StringIO

        from rich.console import Console

        from emhrnn.explain.terminal import print_explanation

        page = StringIO()
        print_explanation(self, Console(file=page, width=PRINTED_WIDTH, color_system=None, highlight=False))
        return page.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from emhrnn.explain.html import html_fragment

        return html_fragment(self)


def as_tuple(labels: Labels) -> tuple[str, ...]:
    """One label, or several, as a tuple."""
    return (labels,) if isinstance(labels, str) else labels


def joined(labels: Labels) -> str:
    """Labels for people."""
    return ", ".join(as_tuple(labels)) or "no label"


def strongest(
    nodes: "Sequence[Phrase | Word]", effects: Float64[np.ndarray, " nodes"], sign: int, n: int
) -> list[tuple[Phrase | Word, float]]:
    """The n nodes with the largest effects of a sign, the strongest first, with their effects. Punctuation alone counts
    only where nothing else does."""
    order = largest(sign * effects, int((sign * effects > 0).sum()))
    spelled = [k for k in order if is_spelled(nodes[k])][:n] or order[:n]
    return [(nodes[k], float(effects[k])) for k in spelled]


def is_spelled(node: Phrase | Word) -> bool:
    """Whether it has a letter or a digit; else it is punctuation."""
    return any(map(str.isalnum, node.text))


def _support(word: Word) -> tuple[bool, bool, float]:
    """The order of words that may decide: those with support first, and of these those that are no punctuation."""
    effect = word.effect or 0.0
    return effect > 0 and is_spelled(word), effect > 0, effect


def largest(values: Float64[np.ndarray, " n"], n: int) -> list[int]:
    """Positions of the n largest values, largest first, earlier positions first among equals."""
    order: list[int] = np.argsort(-values, kind="stable")[: max(n, 0)].tolist()
    return order
