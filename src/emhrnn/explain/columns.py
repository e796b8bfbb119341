"""The numbers of explanations as flat arrays, of one document or of a batch of them one after the other, and what must
hold of them. A batch is checked at once: document by document, that took a good part of the time of an explanation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from emhrnn.errors import DataError

TOLERANCE = 1e-4  # float32 softmaxes over thousands of words are off by about 1e-6


@dataclass(frozen=True, eq=False)
class Columns:
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
    alpha: Float64[np.ndarray, " words"]
    beta: Float64[np.ndarray, " phrases"]
    gamma: Float64[np.ndarray, " sentences"]
    known: Bool[np.ndarray, " words"]
    pi: Float64[np.ndarray, " words"] | None
    direct: Float64[np.ndarray, " words"] | None
    effects: tuple[Float64[np.ndarray, "..."], ...] = ()  # of words, phrases and sentences, where they are known

    @property
    def word_offsets(self) -> Int64[np.ndarray, " documents_plus_1"]:
        """Document d is words[word_offsets[d] : word_offsets[d + 1]]."""
        offsets: np.ndarray = self.phrase_offsets[self.sentence_offsets[self.document_offsets]]
        return offsets

    def __post_init__(self) -> None:
        words, phrases, sentences = len(self.starts), len(self.beta), len(self.gamma)
        if (np.diff(self.document_offsets) < 1).any():
            raise DataError("a document without words has no explanation; give a text with at least one word")
        check_offsets("phrase_offsets", self.phrase_offsets, phrases, words)
        check_offsets("sentence_offsets", self.sentence_offsets, sentences, phrases)
        check_offsets("document_offsets", self.document_offsets, len(self.texts), sentences)
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
        check_weights("gamma", self.gamma, self.document_offsets, "document")
        levels = (("words", words), ("phrases", phrases), ("sentences", sentences))
        for (name, count), values in zip(levels, self.effects, strict=False):
            check_effects(name, values, count)
        check_unit("pi", self.pi)
        check_unit("direct", self.direct)
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


def check_effects(name: str, values: Float64[np.ndarray, " n"], count: int) -> None:
    if len(values) != count or not np.isfinite(values).all():
        raise DataError(f"effects of {name}: {len(values)} values for {count} {name}; give one finite number each")


def check_unit(name: str, values: Float64[np.ndarray, " ..."] | None) -> None:
    if values is not None and not ((values >= 0) & (values <= 1 + TOLERANCE)).all():
        raise DataError(f"{name} must lie between 0 and 1; check the model")


def check_classes(classes: Sequence[str], probabilities: Float64[np.ndarray, "... classes"]) -> None:
    check_unit("probabilities", probabilities)
    if probabilities.shape[-1] != len(classes):
        raise DataError(f"{probabilities.shape[-1]} probabilities for {len(classes)} classes; give one per class")
    if len(set(classes)) < len(classes):
        raise DataError(f"class names must differ; got {list(classes)}")
