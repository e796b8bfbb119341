"""The words most tied to each class: in how many documents of it, and of the others, does a word occur?

                  with the word   without it
    of the class        a             b            log odds ratio   log (a d / b c)
    of the others       c             d            standard error   sqrt(1/a + 1/b + 1/c + 1/d)

with 1/2 added to each count. Words are ranked by ratio / error, which is large for words that are both telling and
frequent enough to be sure of it.
"""

import numpy as np
from jaxtyping import Float64, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.text import Vocabulary

LEAST = 3  # documents that a word must be in


class Ties:
    """Counts of documents, filled batch by batch."""

    def __init__(self, vocabulary: Vocabulary, classes: int) -> None:
        self.vocabulary = vocabulary
        self.documents: Int64[np.ndarray, " classes"] = np.zeros(classes, dtype=np.int64)
        self.holding: Int64[np.ndarray, "classes vocabulary"] = np.zeros((classes, len(vocabulary)), dtype=np.int64)

    def add(self, batch: Batch, labels: Int64[np.ndarray, " documents"]) -> None:
        """`labels` are class numbers."""
        size = len(self.vocabulary)
        document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
        pairs = np.unique(document * size + batch.words)  # each word counts once in a document
        for label in np.unique(labels):
            self.holding[label] += np.bincount(pairs[labels[pairs // size] == label] % size, minlength=size)
        self.documents += np.bincount(labels, minlength=len(self.documents))

    def scores(self, label: int) -> Float64[np.ndarray, " vocabulary"]:
        total, a = self.holding.sum(axis=0), self.holding[label]
        b, c = self.documents[label] - a, total - a
        d = self.documents.sum() - a - b - c
        table = np.stack([a, b, c, d]) + 0.5
        ratio = np.log(table[0] * table[3] / (table[1] * table[2]))
        scores: Float64[np.ndarray, " vocabulary"] = ratio / np.sqrt((1 / table).sum(axis=0))
        return scores

    def top(self, label: int, words: int) -> list[str]:
        """Words of letters only, the most tied first."""
        scores = np.where(self.holding.sum(axis=0) >= LEAST, self.scores(label), -np.inf)
        found: list[str] = []
        for row in np.argsort(-scores, kind="stable").tolist():
            if len(found) == words or scores[row] <= 0:
                break
            if row and self.vocabulary.words[row].isalpha():  # row 0 is the unknown word
                found.append(self.vocabulary.words[row])
        return found
