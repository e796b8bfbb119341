"""Weights of any model as one tree: sentences of a document, phrases of a sentence, words of a phrase.

EM-HRNN             three softmaxes, one for each level: taken as they are
MHS-RNN             one softmax over the words *and* the phrases of a sentence: a phrase weighs what it and its words
                    weigh together, a word its part of what the words of its phrase weigh
HN-ATT, CMA, ...    words in sentences, sentences in the document: every sentence is one phrase
"""

from dataclasses import dataclass

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.explain.arrays import Attention, shares
from emhrnn.models.model import Output
from emhrnn.shapes import Bool, Float


@dataclass(frozen=True, eq=False)
class Levels:
    """Weights that sum to 1 over the words of a phrase, the phrases of a sentence, the sentences of a document."""

    z: Bool[np.ndarray, " words"]
    alpha: Float[np.ndarray, " words"]
    beta: Float[np.ndarray, " phrases"]
    gamma: Float[np.ndarray, " sentences"]
    direct: Float[np.ndarray, " words"] | None = None  # of words among the words and phrases of their sentence

    @property
    def attention(self) -> Attention:
        """The weights alone."""
        return Attention(self.alpha, self.beta, self.gamma, self.direct)


def levels_of(output: Output, batch: Batch) -> Levels | None:
    """None for a model that does not weigh words and sentences."""
    if output.alpha is None or output.gamma is None:
        return None
    alpha, gamma = output.alpha.numpy(), output.gamma.numpy()
    if output.z is None or output.beta is None:
        return Levels(
            z=batch.sentence_final,
            alpha=shares(alpha, batch.sentence_offsets),
            beta=np.ones(batch.n_sentences, dtype=np.float32),
            gamma=gamma,
        )
    beta = output.beta.numpy()
    if not output.joint:
        return Levels(output.z, alpha, beta, gamma)
    offsets = np.concatenate([[0], np.flatnonzero(output.z) + 1])  # (phrases + 1,)
    together = np.add.reduceat(alpha, offsets[:-1]) + beta
    return Levels(output.z, shares(alpha, offsets), together, gamma, direct=alpha)
