"""Documents with some of their words taken out: what a prediction would be without a word, a phrase or a sentence.

Phrases that stay keep their boundaries, so that the only thing that changes is what was taken out:

    words     a  b  c | d  e | f  g  h |          take out d e:    a  b  c | f  g  h |
    phrases   0  0  0   1  1   2  2  2

A sentence of which nothing is left is gone. A document of which nothing is left is one unknown word, as everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.explain.build import BatchEffects
from emhrnn.explain.explanation import Explanation
from emhrnn.models.evidence_reader import AddsEvidence
from emhrnn.shapes import Bool, Float, Float64, Int64
from emhrnn.training.run import Run

UNKNOWN_WORD = 0
LEFT_OUT = 8  # strongest phrases of the evidence model that are left out, one by one
CHUNK_WORDS = 40_000  # of copies that go through the model at once


def without(
    batch: Batch, z: Bool[np.ndarray, " words"], keep: Bool[np.ndarray, " words"]
) -> tuple[Batch, Bool[np.ndarray, " left"]]:
    """The batch of the words to keep, and z among them. A phrase ends at the last of its words that is left."""
    empty = np.bincount(batch.document_of_word, weights=keep, minlength=batch.n_documents) == 0
    if empty.any():
        first = batch.word_offsets[:-1][empty]
        words, keep = batch.words.copy(), keep.copy()
        words[first], keep[first] = UNKNOWN_WORD, True
        batch = replace(batch, words=words)
    phrase = (np.cumsum(z) - z)[keep]  # (left,)
    smaller = batch.only(keep)
    assert smaller is not None  # every document has a word
    return smaller, np.concatenate([phrase[1:] != phrase[:-1], [True]])


def logits_without(
    run: Run, batch: Batch, z: Bool[np.ndarray, " words"], keep: Bool[np.ndarray, "copies words"]
) -> Float[np.ndarray, "copies_times_documents classes"]:
    """Logits of copies of the batch, each of which keeps only some of its words; one copy after the other."""
    at_once = max(CHUNK_WORDS // batch.n_words, 1)
    logits = []
    for first in range(0, len(keep), at_once):
        kept = keep[first : first + at_once]
        smaller, left = without(batch.repeated(len(kept)), np.tile(z, len(kept)), kept.ravel())
        logits.append(logits_of(run, smaller, left))
    return np.concatenate(logits)


def chances_without(
    run: Run, batch: Batch, explanation: Explanation, sets: Sequence[Sequence[int]]
) -> Float64[np.ndarray, "sets classes"]:
    """Probabilities of a document, alone in its batch, without the phrases of each set."""
    keep = np.ones((len(sets), len(explanation.phrase_offsets) - 1), dtype=bool)
    for row, phrases in zip(keep, sets, strict=True):
        row[list(phrases)] = False
    z = np.zeros(batch.n_words, dtype=bool)
    z[explanation.phrase_offsets[1:] - 1] = True
    words = np.repeat(keep, np.diff(explanation.phrase_offsets), axis=1)  # (sets, words)
    chances: np.ndarray = run.probabilities(logits_without(run, batch, z, words)).astype(np.float64)
    return chances


def segmented(
    run: Run, batch: Batch
) -> tuple[Float[np.ndarray, "documents classes"], Bool[np.ndarray, " words"] | None]:
    """Logits and phrase ends as explanations show them; None for a model without phrases."""
    found = run.model.read(batch) if isinstance(run.model, AddsEvidence) else run.model.infer(batch)
    return found.logits, found.z


def logits_of(run: Run, batch: Batch, z: Bool[np.ndarray, " words"]) -> Float[np.ndarray, "documents classes"]:
    """The model on given phrases. A model without latent phrases has no use for them, and one that sums over all
    segmentations neither."""
    logits: np.ndarray = run.model.infer_phrases(batch, z).logits
    return logits


def odds_of(
    run: Run, logits: Float[np.ndarray, "copies classes"], chosen: Int64[np.ndarray, " copies"]
) -> Float64[np.ndarray, " copies"]:
    """log p / (1 - p) of the chosen classes, for the probabilities that are shown."""
    scaled, own = logits.astype(np.float64) / run.temperature, (np.arange(len(logits)), chosen)
    odds: np.ndarray = scaled[own]
    if run.multi_label or scaled.shape[1] == 1:
        return odds
    others = scaled.copy()
    others[own] = -np.inf
    odds -= np.logaddexp.reduce(others, axis=1)
    return odds


def strongest_left_out(
    run: Run, batch: Batch, z: Bool[np.ndarray, " words"], effects: BatchEffects
) -> list[dict[int, float]]:
    """By how much the log-odds of the predicted class fall without each of the `LEFT_OUT` phrases of a document that
    support it most, by the number of the phrase."""
    phrase_of_word, falls = np.cumsum(z) - z, list[dict[int, float]]()
    for d, (first, last) in enumerate(pairwise(batch.word_offsets)):
        one, own, chosen = batch.part(d, d + 1), phrase_of_word[first:last], effects.classes[d]
        values = effects.phrases[own[0] : own[-1] + 1]
        strongest = [k for k in np.argsort(-values, kind="stable")[:LEFT_OUT].tolist() if values[k] > 0]
        keep = own - own[0] != np.array([-1, *strongest])[:, None]  # all words, then without each
        odds = odds_of(run, logits_without(run, one, z[first:last], keep), np.full(len(keep), chosen))
        falls.append(dict(zip(strongest, (odds[0] - odds[1:]).tolist(), strict=True)))
    return falls


LEVELS = ("word", "phrase", "sentence")


@dataclass(frozen=True, eq=False)
class RemovalUnits:
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


def units_of(batch: Batch, z: Bool[np.ndarray, " words"], level: str) -> RemovalUnits:
    """The words, phrases or sentences of a batch, by the name of the level (`LEVELS`)."""
    if level == "word":
        return RemovalUnits(np.arange(batch.n_words), batch.word_offsets)
    if level == "phrase":
        return RemovalUnits(np.cumsum(z) - z, np.concatenate([[0], np.cumsum(z)])[batch.word_offsets])
    return RemovalUnits(batch.sentence_of_word, batch.document_offsets)
