r"""Effects of a model whose phrases add up to its logits: nothing is estimated, nothing is left over.

    e_y(a..b)    what the phrase of words a..b says for class y, divided by the temperature
    phrase       e_c - mean of e_y over the other classes y       c: the predicted class
                 with two classes the log-odds; with several labels a document, the label's own log-odds e_c
    sentence     the sum of its phrases;   document: the sum of its sentences and of the bias (the prior)
    word j       half of what it adds when its phrase w_1..w_k is read from the left, half from the right:

        1/2 [e(w_1..w_j) - e(w_1..w_(j-1))]  +  1/2 [e(w_j..w_k) - e(w_(j+1)..w_k)]

Both brackets telescope, so that the words of a phrase add up to it. Weights are shares of absolute effects.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.explain.effects import BatchEffects
from emhrnn.explain.levels import Levels, shares
from emhrnn.models.evidence import Reading


@runtime_checkable
class AddsEvidence(Protocol):
    """A model whose logits are the bias of the classes and what phrases say."""

    def cohesion(self, batch: Batch) -> Float[Tensor, "words K"]: ...

    def read(self, batch: Batch) -> Reading: ...


@dataclass(frozen=True, eq=False)
class BatchEvidence:
    """Of all documents of a batch, for every class; `PhraseEvidence` says how it is scaled."""

    phrases: Float64[np.ndarray, "phrases classes"]
    bias: Float64[np.ndarray, "documents classes"]  # with what the user and the product say, where the model reads them
    priors: Float64[np.ndarray, " documents"]  # effects of the bias on the predicted class


@dataclass(frozen=True, eq=False)
class Evidenced:
    levels: Levels
    effects: BatchEffects
    evidence: BatchEvidence


def exact_effects(
    reading: Reading,
    batch: Batch,
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
) -> Evidenced:
    """What a reading says: weights, signed effects on the predicted class, and the evidence for every class."""
    chosen, against = reading.chosen.numpy(), not multi_label and len(reading.bias) > 1
    ends = np.flatnonzero(reading.z)
    offsets = np.concatenate([[0], ends + 1])  # of phrases in words
    sentence_ends = np.searchsorted(offsets, batch.sentence_offsets)  # of sentences in phrases
    document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
    words = _word_effects(reading.scores, offsets, chosen[document], against) / temperature
    phrases = np.add.reduceat(words, offsets[:-1])
    sentences = np.add.reduceat(phrases, sentence_ends[:-1])
    sizes = np.add.reduceat(np.abs(phrases), sentence_ends[:-1])
    priors = _support(reading.priors.numpy(), chosen, against) / temperature
    return Evidenced(
        Levels(
            z=reading.z,
            alpha=shares(np.abs(words), offsets),
            beta=shares(np.abs(phrases), sentence_ends),
            gamma=shares(sizes, batch.document_offsets),
        ),
        BatchEffects(reading.chosen, *map(torch.from_numpy, (words, phrases, sentences))),
        BatchEvidence(
            _centred(reading.phrases, against) / temperature,
            _centred(reading.priors, against) / temperature,
            priors,
        ),
    )


def _word_effects(
    scores: Float[Tensor, "words K classes"],
    offsets: Int64[np.ndarray, " phrases_plus_1"],
    chosen: Int64[np.ndarray, " words"],
    against: bool,
) -> Float64[np.ndarray, " words"]:
    """The marginal share of each word in its phrase. Candidate (t, k - 1) is the phrase of k words that ends at t."""
    widths = np.diff(offsets)
    word, last = np.arange(len(chosen)), np.repeat(offsets[1:] - 1, widths)
    place, left = word - np.repeat(offsets[:-1], widths), last - word  # words before it in its phrase, and after it
    until = _support(_at(scores, word, place), chosen, against)  # what the phrase says up to this word
    since = _support(_at(scores, last, left), chosen, against)  # and from this word on
    before = np.where(place > 0, np.roll(until, 1), 0)
    after = np.where(left > 0, np.roll(since, -1), 0)
    effects: np.ndarray = 0.5 * ((until - before) + (since - after))
    return effects


def _at(
    scores: Float[Tensor, "words K classes"], word: Int64[np.ndarray, " n"], width: Int64[np.ndarray, " n"]
) -> Float[np.ndarray, "n classes"]:
    candidates = torch.from_numpy(word * scores.shape[1] + width)
    found: np.ndarray = scores.flatten(0, 1).index_select(0, candidates).numpy()
    return found


def _support(
    said: Float[np.ndarray, "n classes"], chosen: Int64[np.ndarray, " n"], against: bool
) -> Float64[np.ndarray, " n"]:
    """For the chosen class, less the mean of the others if it stands against them."""
    own: np.ndarray = said[np.arange(len(said)), chosen].astype(np.float64)
    if not against:
        return own
    support: np.ndarray = own - (_sums(said) - own) / (said.shape[1] - 1)
    return support


def _centred(said: Float[Tensor, "n classes"], against: bool) -> Float64[np.ndarray, "n classes"]:
    values: np.ndarray = said.numpy().astype(np.float64)
    return values - _sums(values)[:, None] / values.shape[1] if against else values


def _sums(said: Float[np.ndarray, "n classes"]) -> Float[np.ndarray, " n"]:
    """Over the classes. A product with ones: sums of many short rows are slow."""
    sums: np.ndarray = said @ np.ones(said.shape[1], dtype=said.dtype)
    return sums
