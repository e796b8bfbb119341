"""Why a document was classified as it was, as data: document > sentence > phrase > word.

    document   v = sum_i gamma_i h3_i      gamma  sums to 1 over the sentences of the document
    sentence   s = sum_k beta_k  h2_k      beta   sums to 1 over the phrases of a sentence
    phrase     q = sum_t alpha_t h1_t      alpha  sums to 1 over the words of a phrase

A node's `weight` is its own attention among its siblings; its `share` is the product of the weights down to it, so the
shares of all words (or of all phrases, or of all sentences) sum to 1 over the document. `lift` is the weight divided by
chance (1 / number of siblings): weights of softmaxes over 4 and over 20 items can only be compared after that. Its
`effect` is signed: about how far the log-odds of the predicted class would fall without it (explain/effects.py).

`Explanation` keeps flat arrays plus offsets, which cost nothing to make; the tree of `Sentence`, `Phrase` and `Word` is
built when somebody asks for it.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from emhrnn.errors import DataError

TOLERANCE = 1e-4  # float32 softmaxes over thousands of words are off by about 1e-6
PRINTED_WIDTH = 100

Labels = str | tuple[str, ...]  # one label, or the labels of a multi-label document


@dataclass(frozen=True, eq=False)
class Effects:
    """On the log-odds of one class: positive for what supports it, negative for what speaks against it."""

    label: str
    words: Float64[np.ndarray, " words"]
    phrases: Float64[np.ndarray, " phrases"]
    sentences: Float64[np.ndarray, " sentences"]


@dataclass(frozen=True, slots=True)
class Word:
    """`boundary` is pi, the probability that a phrase ends here; None where the model has no latent boundaries."""

    text: str
    start: int
    end: int
    index: int
    weight: float
    share: float
    lift: float
    effect: float | None
    known: bool
    boundary: float | None


@dataclass(frozen=True, slots=True)
class Phrase:
    text: str
    start: int
    end: int
    index: int
    weight: float
    share: float
    lift: float
    effect: float | None
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    start: int
    end: int
    index: int
    weight: float
    share: float
    lift: float
    effect: float | None
    phrases: tuple[Phrase, ...]


class DecisivePath(NamedTuple):
    """The paper's descent: the heaviest sentence, its heaviest phrase, that phrase's heaviest word. Where words and
    phrases share one softmax (MHS-RNN), the heaviest sentence and at once its heaviest word."""

    sentence: Sentence
    phrase: Phrase
    word: Word


@dataclass(frozen=True, eq=False)
class Explanation:
    """One document, its prediction, and the attention at every level. Spans count characters of the original `text`."""

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
    alpha: Float64[np.ndarray, " words"]
    beta: Float64[np.ndarray, " phrases"]
    gamma: Float64[np.ndarray, " sentences"]
    known: Bool[np.ndarray, " words"]
    pi: Float64[np.ndarray, " words"] | None = None
    direct: Float64[np.ndarray, " words"] | None = None  # among the words and phrases of the sentence (MHS-RNN)
    effects: Effects | None = None  # None where the model's are not known

    def __post_init__(self) -> None:
        words, phrases, sentences = len(self.starts), len(self.beta), len(self.gamma)
        if words == 0:
            raise DataError("a document without words has no explanation; give a text with at least one word")
        check_offsets("phrase_offsets", self.phrase_offsets, phrases, words)
        check_offsets("sentence_offsets", self.sentence_offsets, sentences, phrases)
        for name, column in (
            ("ends", self.ends),
            ("alpha", self.alpha),
            ("known", self.known),
            ("pi", self.pi),
            ("direct", self.direct),
        ):
            if column is not None and len(column) != words:
                raise DataError(f"{name} has {len(column)} values for {words} words; give one value per word")
        check_weights("alpha", self.alpha, self.phrase_offsets, "phrase")
        check_weights("beta", self.beta, self.sentence_offsets, "sentence")
        check_weights("gamma", self.gamma, np.array([0, sentences]), "document")
        if self.effects is not None:
            check_effects(self.effects, words, phrases, sentences)
        check_spans(self.starts, self.ends, len(self.text))
        check_unit("pi", self.pi)
        check_unit("direct", self.direct)
        check_unit("probabilities", self.probabilities)
        if len(self.probabilities) != len(self.classes):
            raise DataError(
                f"{len(self.probabilities)} probabilities for {len(self.classes)} classes; give one per class"
            )
        if len(set(self.classes)) < len(self.classes):
            raise DataError(f"class names must differ; got {list(self.classes)}")
        unknown = [name for name in as_tuple(self.predicted) if name not in self.classes]
        if unknown:
            raise DataError(f"predicted label {unknown[0]!r} is none of the classes {list(self.classes)}")

    # ---- shares: what each node contributes to the document vector -------------------------------------------------

    @cached_property
    def phrase_shares(self) -> Float64[np.ndarray, " phrases"]:
        shares: Float64[np.ndarray, " phrases"] = np.repeat(self.gamma, np.diff(self.sentence_offsets))
        shares *= self.beta
        return shares

    @cached_property
    def word_shares(self) -> Float64[np.ndarray, " words"]:
        shares: Float64[np.ndarray, " words"] = np.repeat(self.phrase_shares, np.diff(self.phrase_offsets))
        shares *= self.alpha
        return shares

    # ---- the tree ------------------------------------------------------------------------------------------------

    @cached_property
    def sentences(self) -> tuple[Sentence, ...]:
        bounds = pairwise(self.sentence_offsets.tolist())
        weighted = enumerate(zip(self.gamma.tolist(), bounds, strict=True))
        return tuple(self._sentence(i, weight, first, last) for i, (weight, (first, last)) in weighted)

    @cached_property
    def phrases(self) -> tuple[Phrase, ...]:
        """All phrases in reading order."""
        return tuple(phrase for sentence in self.sentences for phrase in sentence.phrases)

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """All words in reading order."""
        return tuple(word for phrase in self.phrases for word in phrase.words)

    def _sentence(self, index: int, weight: float, first: int, last: int) -> Sentence:
        phrases = tuple(self._phrase(k, k - first, last - first) for k in range(first, last))
        start, end = phrases[0].start, phrases[-1].end
        lift = weight * len(self.gamma)
        effect = None if self.effects is None else float(self.effects.sentences[index])
        return Sentence(self.text[start:end], start, end, index, weight, weight, lift, effect, phrases)

    def _phrase(self, k: int, index: int, siblings: int) -> Phrase:
        first, last = int(self.phrase_offsets[k]), int(self.phrase_offsets[k + 1])
        span = slice(first, last)
        nothing = [None] * (last - first)
        boundaries = nothing if self.pi is None else self.pi[span].tolist()
        effects = nothing if self.effects is None else self.effects.words[span].tolist()
        columns = (self.starts, self.ends, self.alpha, self.word_shares, self.known)
        rows = zip(*(column[span].tolist() for column in columns), effects, boundaries, strict=True)
        words = tuple(
            Word(self.text[start:end], start, end, t, weight, share, weight * (last - first), effect, known, boundary)
            for t, (start, end, weight, share, known, effect, boundary) in enumerate(rows)
        )
        start, end, weight = words[0].start, words[-1].end, float(self.beta[k])
        share, effect = float(self.phrase_shares[k]), None if self.effects is None else float(self.effects.phrases[k])
        return Phrase(self.text[start:end], start, end, index, weight, share, weight * siblings, effect, words)

    # ---- the questions people ask --------------------------------------------------------------------------------

    @property
    def correct(self) -> bool | None:
        """Whether the prediction is the true label; None where the true label is not known."""
        return None if self.label is None else set(as_tuple(self.predicted)) == set(as_tuple(self.label))

    def ranking(self) -> list[tuple[str, float]]:
        """Classes with their probabilities, the most probable first."""
        order = np.argsort(-self.probabilities, kind="stable")
        return [(self.classes[c], float(self.probabilities[c])) for c in order]

    def top_words(self, n: int = 5) -> list[Word]:
        """The n words with the largest shares of the document; the earlier word wins a tie."""
        return [self.words[t] for t in largest(self.word_shares, n)]

    def top_phrases(self, n: int = 5) -> list[Phrase]:
        return [self.phrases[k] for k in largest(self.phrase_shares, n)]

    def top_sentences(self, n: int = 5) -> list[Sentence]:
        return [self.sentences[i] for i in largest(self.gamma, n)]

    def supporting(self, n: int = 3) -> list[Phrase]:
        """The n phrases that speak most for the predicted class; fewer where fewer do, none where that is not known."""
        return self._speaking(n, 1)

    def opposing(self, n: int = 3) -> list[Phrase]:
        """The n phrases that speak most against the predicted class."""
        return self._speaking(n, -1)

    def _speaking(self, n: int, sign: int) -> list[Phrase]:
        if self.effects is None:
            return []
        return [self.phrases[k] for k in largest(sign * self.effects.phrases, n) if sign * self.effects.phrases[k] > 0]

    def decisive_path(self) -> DecisivePath:
        i = int(np.argmax(self.gamma))
        sentence = self.sentences[i]
        if self.direct is not None:
            first, last = self.phrase_offsets[self.sentence_offsets[[i, i + 1]]].tolist()
            t = first + int(np.argmax(self.direct[first:last]))
            k = int(np.searchsorted(self.phrase_offsets, t, side="right")) - 1
            return DecisivePath(sentence, self.phrases[k], self.words[t])
        phrase = max(sentence.phrases, key=lambda node: node.weight)
        return DecisivePath(sentence, phrase, max(phrase.words, key=lambda node: node.weight))

    # ---- renderings ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The tree as plain JSON values; `from_dict` gives the same explanation back."""
        from emhrnn.explain.json import explanation_to_dict

        return explanation_to_dict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Explanation":
        from emhrnn.explain.json import explanation_from_dict

        return explanation_from_dict(data)

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
    return (labels,) if isinstance(labels, str) else labels


def largest(values: Float64[np.ndarray, " n"], n: int) -> list[int]:
    """Positions of the n largest values, largest first, earlier positions first among equals."""
    order: list[int] = np.argsort(-values, kind="stable")[: max(n, 0)].tolist()
    return order


def check_offsets(name: str, offsets: Int64[np.ndarray, " n"], segments: int, total: int) -> None:
    if len(offsets) != segments + 1 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 1).any():
        raise DataError(f"{name} must rise strictly from 0 to {total} in {segments} steps; got {offsets.tolist()[:10]}")


def check_weights(name: str, weights: Float64[np.ndarray, " n"], offsets: Int64[np.ndarray, " m"], parent: str) -> None:
    """Attention is a softmax: no weight is negative or NaN, and the weights of each segment sum to 1."""
    if not (weights >= 0).all():  # also catches NaN
        raise DataError(f"{name} holds a negative or missing weight; attention weights are softmaxes, check the model")
    sums = np.add.reduceat(weights, offsets[:-1])
    wrong = np.flatnonzero(~(np.abs(sums - 1) < TOLERANCE))
    if len(wrong):
        raise DataError(
            f"{name} of {parent} {wrong[0] + 1} sums to {sums[wrong[0]]:.4g}; weights of a {parent} sum to 1"
        )


def check_effects(effects: Effects, words: int, phrases: int, sentences: int) -> None:
    for name, values, count in (
        ("words", effects.words, words),
        ("phrases", effects.phrases, phrases),
        ("sentences", effects.sentences, sentences),
    ):
        if len(values) != count or not np.isfinite(values).all():
            raise DataError(f"effects of {name}: {len(values)} values for {count} {name}; give one finite number each")


def check_spans(starts: Int64[np.ndarray, " words"], ends: Int64[np.ndarray, " words"], length: int) -> None:
    flat = np.column_stack([starts, ends]).ravel()
    if flat[0] < 0 or flat[-1] > length or (np.diff(flat) < 0).any():
        raise DataError(f"word spans must follow each other inside the text of {length} characters; check the offsets")


def check_unit(name: str, values: Float64[np.ndarray, " n"] | None) -> None:
    if values is not None and not ((values >= 0) & (values <= 1 + TOLERANCE)).all():
        raise DataError(f"{name} must lie between 0 and 1; check the model")
