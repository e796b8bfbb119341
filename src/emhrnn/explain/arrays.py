"""Attention weights of a document or of a batch, and checks that arrays of an explanation fit each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emhrnn.errors import DataError
from emhrnn.shapes import Float, Float64, Int64

TOLERANCE = 1e-4  # float32 softmaxes over thousands of words are off by about 1e-6


@dataclass(frozen=True, eq=False)
class Attention:
    """Weights that sum to 1 over the words of a phrase, the phrases of a sentence, the sentences of a document."""

    alpha: Float[np.ndarray, " words"]
    beta: Float[np.ndarray, " phrases"]
    gamma: Float[np.ndarray, " sentences"]
    direct: Float[np.ndarray, " words"] | None = None  # among the words and phrases of their sentence (MHS-RNN)

    def part(self, words: slice, phrases: slice, sentences: slice) -> "Attention":
        """A copy of one document's."""
        direct = None if self.direct is None else self.direct[words].copy()
        return Attention(self.alpha[words].copy(), self.beta[phrases].copy(), self.gamma[sentences].copy(), direct)

    def check(
        self,
        phrase_offsets: Int64[np.ndarray, " phrases_plus_1"],
        sentence_offsets: Int64[np.ndarray, " sentences_plus_1"],
        document_offsets: Int64[np.ndarray, " documents_plus_1"],
    ) -> None:
        """Raise a DataError unless there is a weight for each node, and siblings sum to 1."""
        check_weights("alpha", self.alpha, phrase_offsets, "word", "phrase")
        check_weights("beta", self.beta, sentence_offsets, "phrase", "sentence")
        check_weights("gamma", self.gamma, document_offsets, "sentence", "document")
        check_length("direct", self.direct, len(self.alpha), "word")
        check_unit("direct", self.direct)


def check_offsets(name: str, offsets: Int64[np.ndarray, " n"], total: int) -> None:
    """Raise a DataError unless offsets rise strictly from 0 to `total`, which is at least 1."""
    if len(offsets) < 2 or offsets[0] != 0 or offsets[-1] != total or (np.diff(offsets) < 1).any():
        raise DataError(f"{name} must rise strictly from 0 to {total}; got {offsets.tolist()[:10]}")


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
    """Raise a DataError unless there is one finite number for each of the `count` words, phrases or sentences."""
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
