"""Pretrained word vectors, and the embedding matrix that they give for a vocabulary."""

from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32

from emhrnn.errors import DataError
from emhrnn.files import write_bytes
from emhrnn.text.vocabulary import Vocabulary

# What a short form stands for: vectors without `n't` still know `not`.
_FULL_FORMS = {
    "n't": "not", "'s": "is", "'re": "are", "'m": "am", "'ve": "have", "'ll": "will", "'d": "would", "ca": "can",
    "wo": "will", "ai": "am", "'em": "them", "'til": "until", "'cause": "because", "a": "an", "i": "me",
    "!!": "!", "!!!": "!", "?!": "?", "??": "?", "???": "?", "...": "…", "..": "…", "--": "-", "–": "-", "—": "-",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Vectors:
    """`matrix[i]` is the vector of `words[i]`. A word that comes twice has its first vector."""

    words: list[str]
    matrix: Float32[np.ndarray, "words size"]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.matrix):
            raise DataError(f"there are {len(self.words)} words and {len(self.matrix)} vectors; give one vector a word")
        if self.matrix.size == 0:
            raise DataError(
                f"the vectors are {self.matrix.shape[0]} x {self.matrix.shape[1]}; there must be at least one"
            )
        finite = np.isfinite(self.matrix).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            raise DataError(f"the vector of {self.words[row]!r} (word {row + 1}) is not finite; remove or repair it")

    def __len__(self) -> int:
        return len(self.words)

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        return int(self.matrix.shape[1])

    @cached_property
    def _rows(self) -> dict[str, int]:
        return dict(zip(reversed(self.words), range(len(self) - 1, -1, -1), strict=True))

    def known(self, vocabulary: Vocabulary) -> Bool[np.ndarray, " vocabulary"]:
        """Which words of the vocabulary have a vector of their own."""
        return np.array([word in self._rows for word in vocabulary.words], dtype=bool)

    def lookup(
        self, vocabulary: Vocabulary, *, generator: np.random.Generator
    ) -> Float32[np.ndarray, "vocabulary size"]:
        """The embedding matrix of a vocabulary.

        A word without a vector starts from the vector of a related form (`n't`: not, `mr.`: mr, `god-awful`: the mean
        of god and awful); without one, from a normal draw with the mean and deviation of all vectors in each
        dimension. `<unk>` starts from their mean.
        """
        mean = self.matrix.mean(axis=0, dtype=np.float64)
        deviation = self.matrix.std(axis=0, dtype=np.float64)
        # One draw per word, used or not: a word's vector does not depend on which other words are known.
        matrix = generator.normal(mean, deviation, (len(vocabulary), self.size)).astype(np.float32)
        for i, word in enumerate(vocabulary.words):
            rows = self._related_rows(word)
            if rows:
                matrix[i] = self.matrix[rows].mean(axis=0)
            elif i == 0:
                matrix[i] = mean
        return matrix

    def _related_rows(self, word: str) -> list[int]:
        for forms in ([word], [_FULL_FORMS.get(word, word)], [word.rstrip(".")], word.split("-")):
            rows = [self._rows[form] for form in forms if form in self._rows]
            if len(rows) == len(forms):
                return rows
        return []

    def save(self, path: Path) -> None:
        """An `.npz` of `words`, one string with a word a line, and `vectors` in half precision."""
        broken = next((word for word in self.words if "\n" in word), None)
        if broken is not None:
            raise DataError(f"the word {broken!r} has a line end and cannot be written to {path}; remove it")
        if np.abs(self.matrix).max() > np.finfo(np.float16).max:
            raise DataError(f"a number above 65504 does not fit half precision; scale the vectors to write {path}")
        content = BytesIO()
        np.savez_compressed(content, words=np.array("\n".join(self.words)), vectors=self.matrix.astype(np.float16))
        write_bytes(path, content.getvalue())
