"""The flat arrays of documents that are explained, and the checks that they fit each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from emhrnn.errors import DataError

TOLERANCE = 1e-4  # float32 softmaxes over thousands of words are off by about 1e-6


@dataclass(frozen=True, eq=False)
class Attention:
    """Weights that sum to 1 over the words of a phrase, the phrases of a sentence, the sentences of a document."""

    alpha: Float[np.ndarray, " words"]
    beta: Float[np.ndarray, " phrases"]
    gamma: Float[np.ndarray, " sentences"]
    direct: Float[np.ndarray, " words"] | None = None  # among the words and phrases of their sentence (MHS-RNN)


@dataclass(frozen=True, eq=False)
class DocumentArrays:
    """Phrase k is words[phrase_offsets[k] : phrase_offsets[k + 1]], and so on up to documents. The spans of a document
    count characters of its own text.

    Raises:
        DataError: the arrays do not fit each other or the texts, or weights do not sum to 1.
    """

    texts: Sequence[str]
    starts: Int64[np.ndarray, " words"]
    ends: Int64[np.ndarray, " words"]
    phrase_offsets: Int64[np.ndarray, " phrases_plus_1"]
    sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
    document_offsets: Int64[np.ndarray, " documents_plus_1"]
    known: Bool[np.ndarray, " words"]
    pi: Float64[np.ndarray, " words"] | None
    attention: Attention | None
    effects: tuple[Float64[np.ndarray, "..."], ...] = ()  # of words, phrases and sentences, where they are known

    @property
    def word_offsets(self) -> Int64[np.ndarray, " documents_plus_1"]:
        """Document d is words[word_offsets[d] : word_offsets[d + 1]]."""
        offsets: np.ndarray = self.phrase_offsets[self.sentence_offsets[self.document_offsets]]
        return offsets

    def __post_init__(self) -> None:
        words, phrases, sentences = len(self.starts), len(self.phrase_offsets) - 1, len(self.sentence_offsets) - 1
        if (np.diff(self.document_offsets) < 1).any():
            raise DataError("a document without words has no explanation; give a text with at least one word")
        check_offsets("phrase_offsets", self.phrase_offsets, phrases, words)
        check_offsets("sentence_offsets", self.sentence_offsets, sentences, phrases)
        check_offsets("document_offsets", self.document_offsets, len(self.texts), sentences)
        for name, column in (("ends", self.ends), ("known", self.known), ("pi", self.pi)):
            check_length(name, column, words, "word")
        if (looked := self.attention) is not None:
            check_weights("alpha", looked.alpha, self.phrase_offsets, "word", "phrase")
            check_weights("beta", looked.beta, self.sentence_offsets, "phrase", "sentence")
            check_weights("gamma", looked.gamma, self.document_offsets, "sentence", "document")
            check_length("direct", looked.direct, words, "word")
            check_unit("direct", looked.direct)
        levels = (("words", words), ("phrases", phrases), ("sentences", sentences))
        for (name, count), values in zip(levels, self.effects, strict=False):
            check_effects(name, values, count)
        check_unit("pi", self.pi)
        self._check_spans()

    def _check_spans(self) -> None:
        """Words follow each other inside the text of their document."""
        lengths = np.fromiter(map(len, self.texts), np.int64, len(self.texts))
        bounds = self.word_offsets
        first, last = bounds[:-1], bounds[1:] - 1
        steps = self.starts[1:] - self.ends[:-1]
        steps[last[:-1]] = 0  # from one document to the next
        wrong = (self.starts[first] < 0) | (self.ends[last] > lengths)
        if wrong.any() or (steps < 0).any() or (self.starts > self.ends).any():
            length = lengths[int(np.argmax(wrong))]
            raise DataError(
                f"word spans must follow each other inside the text of {length} characters; check the offsets"
            )


def check_offsets(name: str, offsets: Int64[np.ndarray, " n"], segments: int, total: int) -> None:
    """Raise a DataError unless offsets rise strictly from 0 to `total`."""
    if len(offsets) != segments + 1 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 1).any():
        raise DataError(f"{name} must rise strictly from 0 to {total} in {segments} steps; got {offsets.tolist()[:10]}")


def check_length(name: str, values: np.ndarray | None, count: int, unit: str) -> None:
    """Raise a DataError unless there is one value for each unit, or none at all."""
    if values is not None and len(values) != count:
        raise DataError(f"{name} has {len(values)} values for {count} {unit}s; give one value per {unit}")


def check_weights(
    name: str, weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " m"], unit: str, parent: str
) -> None:
    """Attention is a softmax: no weight is negative or NaN, and the weights of each segment sum to 1."""
    check_length(name, weights, int(offsets[-1]), unit)
    if not (weights >= 0).all():  # also catches NaN
        raise DataError(f"{name} holds a negative or missing weight; attention weights are softmaxes, check the model")
    sums = np.add.reduceat(weights, offsets[:-1])
    wrong = np.flatnonzero(~(np.abs(sums - 1) < TOLERANCE))
    if len(wrong):
        raise DataError(
            f"{name} of {parent} {wrong[0] + 1} sums to {sums[wrong[0]]:.4g}; weights of a {parent} sum to 1"
        )


def check_effects(name: str, values: Float64[np.ndarray, " n"], count: int) -> None:
    """Raise a DataError unless there is one finite number each."""
    if len(values) != count or not np.isfinite(values).all():
        raise DataError(f"effects of {name}: {len(values)} values for {count} {name}; give one finite number each")


def check_unit(name: str, values: Float[np.ndarray, " ..."] | None) -> None:
    """Raise a DataError unless all values are between 0 and 1."""
    if values is not None and not ((values >= 0) & (values <= 1 + TOLERANCE)).all():
        raise DataError(f"{name} must lie between 0 and 1; check the model")


def check_classes(classes: Sequence[str], probabilities: Float64[np.ndarray, "... classes"]) -> None:
    """Raise a DataError unless class names differ and each has a probability."""
    check_unit("probabilities", probabilities)
    if probabilities.shape[-1] != len(classes):
        raise DataError(f"{probabilities.shape[-1]} probabilities for {len(classes)} classes; give one per class")
    if len(set(classes)) < len(classes):
        raise DataError(f"class names must differ; got {list(classes)}")


def shares(weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"]) -> Float[np.ndarray, " n"]:
    """Weights as shares of their segment. Where a segment has no weight at all, its parts are equal."""
    lengths = np.diff(offsets)
    sums = np.repeat(np.add.reduceat(weights, offsets[:-1]), lengths)
    equal = (1 / np.repeat(lengths, lengths)).astype(weights.dtype)
    nothing = sums < np.finfo(np.float32).tiny
    parts: Float[np.ndarray, " n"] = np.where(nothing, equal, weights / np.where(nothing, 1, sums))
    return parts
