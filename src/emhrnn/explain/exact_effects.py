r"""Effects of a model whose words add up to its logits: nothing is estimated, nothing is left over.

    w_y(t)       what word t adds to the logit of class y (models/evidence.py), divided by the temperature
    word         w_c - mean of w_y over the other classes y       c: the predicted class
                 with two classes the log-odds; with several labels a document, the label's own log-odds w_c
    phrase       the sum of its words;   sentence: the sum of its phrases
    document     the sum of its sentences and of the bias (the prior): the log-odds of the shown probabilities

Weights are shares of absolute effects.
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
    words = _support(reading.words.numpy(), chosen[document], against) / temperature
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
