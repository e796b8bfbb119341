"""Effects of the evidence model: what its phrases add to the logits, exactly. There is nothing to estimate."""

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.explain.build import BatchEffects, BatchEvidence
from emhrnn.layers.phrase_scores import segment_sums
from emhrnn.models.evidence_reader import Reading
from emhrnn.shapes import Float64, Int64


def exact_effects(
    reading: Reading, batch: Batch, *, multi_label: bool = False, temperature: float = 1.0
) -> tuple[BatchEffects, BatchEvidence]:
    """What a reading says: signed effects on the predicted class, and the evidence for every class."""
    chosen, against = reading.chosen, not multi_label and len(reading.bias) > 1
    ends = np.flatnonzero(reading.z)
    said, priors = reading.words, reading.priors.astype(np.float64) / temperature
    if temperature != 1.0:
        said = said / temperature
    if against:  # words are centred over the classes already: a softmax does not see the mean
        priors -= priors.mean(axis=1, keepdims=True)
    by_phrase = segment_sums(said, np.concatenate([[0], ends[:-1] + 1]))
    phrases_before = np.searchsorted(ends, batch.sentence_offsets)  # each sentence
    of_document = np.diff(phrases_before[batch.document_offsets])
    phrases = _support(by_phrase, np.repeat(chosen, of_document), against)
    effects = BatchEffects(
        chosen,
        words=_support(said, np.repeat(chosen, batch.document_lengths), against),
        phrases=phrases,
        sentences=np.add.reduceat(phrases, phrases_before[:-1]),
        by="evidence",
        priors=_support(priors, chosen, against),
    )
    return effects, BatchEvidence(by_phrase, priors)


def _support(
    said: Float64[np.ndarray, "n classes"], chosen: Int64[np.ndarray, " n"], against: bool
) -> Float64[np.ndarray, " n"]:
    """For the chosen class; less the mean of the others, if it stands against them. Rows are centred: the others sum to
    minus its own."""
    own: np.ndarray = said.reshape(-1)[chosen + np.arange(0, said.size, said.shape[1])]
    return own * (said.shape[1] / (said.shape[1] - 1)) if against else own
