"""What can be taken out of documents as a whole: words, phrases or sentences."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from emhrnn.corpus.batch import Batch

LEVELS = ("word", "phrase", "sentence")


@dataclass(frozen=True, eq=False)
class Units:
    """What is taken out as a whole: words, phrases or sentences."""

    of_word: Int64[np.ndarray, " words"]
    offsets: Int64[np.ndarray, " documents_plus_1"]

    @property
    def counts(self) -> Int64[np.ndarray, " documents"]:
        return np.diff(self.offsets)

    def top(self, scores: Float[np.ndarray, " units"], share: float) -> Bool[np.ndarray, " units"]:
        """The best share of each document's units, at least one; the earlier unit wins a tie."""
        document = np.repeat(np.arange(len(self.counts)), self.counts)
        order = np.lexsort((-scores, document))  # by document, then the best first; stable
        rank = np.empty(len(scores), dtype=np.int64)
        rank[order] = np.arange(len(scores)) - self.offsets[document]
        best: np.ndarray = rank < np.ceil(share * self.counts)[document]
        return best


def units_of(batch: Batch, z: Bool[np.ndarray, " words"], level: str) -> Units:
    if level == "word":
        return Units(np.arange(batch.n_words), batch.word_offsets)
    if level == "phrase":
        return Units(np.cumsum(z) - z, np.concatenate([[0], np.cumsum(z)])[batch.word_offsets])
    return Units(batch.sentence_of_word, batch.document_offsets)
