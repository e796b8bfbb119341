"""What each phrase says for every class, as data, where a model's phrases add up to its logits (models/evidence.py)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from emhrnn.errors import DataError


@dataclass(frozen=True, eq=False)
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

    def check(self, phrases: int) -> None:
        """Raise a DataError unless there is one finite number for each phrase and class."""
        if self.phrases.shape != (phrases, len(self.classes)) or self.bias.shape != (len(self.classes),):
            raise DataError(
                f"evidence of shape {self.phrases.shape} for {phrases} phrases and {len(self.classes)} classes; give "
                "one number for each phrase and class, and a bias for each class"
            )
        if not (np.isfinite(self.phrases).all() and np.isfinite(self.bias).all()):
            raise DataError("evidence holds a number that is not finite; check the model")
