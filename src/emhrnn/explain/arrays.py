"""What an explanation is made of, as flat arrays: attention, effects and evidence; and how much support
stands around each word, where a reader who marks passages would mark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from emhrnn.errors import DataError
from emhrnn.shapes import Float, Float64, Int64

TOLERANCE = 1e-4  # of sums of weights, and rounding

EffectsBy = Literal["evidence", "removal", "owen", "estimate"]


@dataclass(frozen=True, eq=False)
class Attention:
    """Weights that sum to 1 over the words of a phrase, the phrases of a sentence, the sentences of a document."""

    alpha: Float[np.ndarray, " words"]
    beta: Float[np.ndarray, " phrases"]
    gamma: Float[np.ndarray, " sentences"]
    direct: Float[np.ndarray, " words"] | None = None  # among the words and phrases of their sentence (MHS-RNN)

    def part(self, words: slice, phrases: slice, sentences: slice) -> "Attention":
        """One document's."""
        direct = None if self.direct is None else self.direct[words]
        return Attention(self.alpha[words], self.beta[phrases], self.gamma[sentences], direct)

    def normalised(
        self,
        phrase_offsets: Int64[np.ndarray, " phrases_plus_1"],
        sentence_offsets: Int64[np.ndarray, " sentences_plus_1"],
        document_offsets: Int64[np.ndarray, " documents_plus_1"],
    ) -> "Attention":
        """Without rounding. Raises a DataError unless the weights of siblings sum to 1."""
        return Attention(
            _softmaxes("alpha", self.alpha, phrase_offsets, "phrase"),
            _softmaxes("beta", self.beta, sentence_offsets, "sentence"),
            _softmaxes("gamma", self.gamma, document_offsets, "document"),
            self.direct,
        )


@dataclass(eq=False)  # not frozen, nor is PhraseEvidence: freezing costs more than making them
class Effects:
    """On the log-odds of one class: positive for what supports it, negative for what opposes it."""

    label: str
    words: Float64[np.ndarray, " words"]
    phrases: Float64[np.ndarray, " phrases"]
    sentences: Float64[np.ndarray, " sentences"]
    prior: float | None = None  # of the class without any text; known where effects add up
    by: EffectsBy = "estimate"
    error: float | None = None  # the largest standard error of a phrase's effect, where effects are sampled
    left_out: Mapping[int, float] | None = None  # by how much the log-odds fall without some phrases, by their numbers

    @property
    def total(self) -> float:
        """The prior and all sentences: the log-odds of the probabilities."""
        return (self.prior or 0.0) + float(self.sentences.sum())


@dataclass(eq=False)
class PhraseEvidence:
    """One document. With one label a document, every row is centred over the classes: a softmax does not see the mean.
    All numbers are divided by the temperature of the shown probabilities."""

    classes: tuple[str, ...]  # the columns
    phrases: Float64[np.ndarray, "phrases classes"]
    bias: Float64[np.ndarray, " classes"]  # of the classes, without any phrase
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]  # sentence i is phrases[offsets[i] : offsets[i + 1]]

    def sentences(self) -> Float64[np.ndarray, "sentences classes"]:
        """The sums of their phrases."""
        sums: np.ndarray = np.add.reduceat(self.phrases, self.sentence_offsets[:-1], axis=0)
        return sums

    def logits(self) -> Float64[np.ndarray, " classes"]:
        """The bias and all sentences: the logits of the probabilities."""
        sums: np.ndarray = self.bias + self.sentences().sum(axis=0)
        return sums

    def only(self, classes: Sequence[str]) -> "PhraseEvidence":
        """For some of the classes, in this order."""
        columns = [self.classes.index(name) for name in classes]
        return PhraseEvidence(tuple(classes), self.phrases[:, columns], self.bias[columns], self.sentence_offsets)


def _softmaxes(
    name: str, weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"], parent: str
) -> Float64[np.ndarray, " n"]:
    """float32 softmaxes sum to 1 only to rounding, which grows with their length; shares are products of three, so the
    rounding is removed here. Weights that are wrong by more are refused."""
    if not (weights >= 0).all():  # also catches NaN
        raise DataError(f"{name} holds a negative or missing weight; attention weights are softmaxes, check the model")
    exact: Float64[np.ndarray, " n"] = weights.astype(np.float64)
    sums, lengths = np.add.reduceat(exact, offsets[:-1]), np.diff(offsets)
    wrong = np.flatnonzero(~(np.abs(sums - 1) < TOLERANCE + lengths * np.finfo(np.float32).eps))
    if len(wrong):
        raise DataError(
            f"{name} of {parent} {wrong[0] + 1} sums to {sums[wrong[0]]:.4g}; weights of a {parent} sum to 1"
        )
    exact /= np.repeat(sums, lengths)
    return exact


def shares(weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"]) -> Float[np.ndarray, " n"]:
    """Weights as shares of their segment. Where a segment has no weight at all, its parts are equal."""
    lengths = np.diff(offsets)
    sums = np.repeat(np.add.reduceat(weights, offsets[:-1]), lengths)
    equal = (1 / np.repeat(lengths, lengths)).astype(weights.dtype)
    nothing = sums < np.finfo(np.float32).tiny
    parts: Float[np.ndarray, " n"] = np.where(nothing, equal, weights / np.where(nothing, 1, sums))
    return parts


REACH = 7  # words; chosen on what people marked in the training split of ERASER movies (docs/trust.md)


def nearby(
    effects: Float64[np.ndarray, " words"], sentence_of_word: Int64[np.ndarray, " words"]
) -> Float64[np.ndarray, " words"]:
    """The positive effects of a word and its neighbours in its sentence. A neighbour counts a seventh less for each
    step, and nothing from the seventh on."""
    support = np.maximum(effects, 0.0)
    total: np.ndarray = support.copy()
    for step in range(1, min(REACH, len(support))):
        together = (1 - step / REACH) * (sentence_of_word[step:] == sentence_of_word[:-step])
        total[step:] += together * support[:-step]
        total[:-step] += together * support[step:]
    return total
