"""Whole-document samples of Z and their likelihood, for the E-steps that draw instead of enumerate."""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em.imputation import sample_prior
from emhrnn.em.likelihood import batch_labels
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.models.output import log_likelihood


def draw(
    batch: Batch, a: Float[Tensor, " words"], samples: int, generator: np.random.Generator
) -> Bool[np.ndarray, "samples words"]:
    """Z^k ~ p(Z | w), independently."""
    return np.stack([sample_prior(batch, a, generator) for _ in range(samples)])


@torch.no_grad()
def sample_likelihood(
    model: EMHRNN, batch: Batch, states: WordStates, z: Bool[np.ndarray, "samples words"]
) -> Float[Tensor, "samples documents"]:
    """log p(y | Z^k, w) of every document: one pass over as many copies of the batch as there are samples, which
    share the word states."""
    copies = len(z)
    batches = batch.repeated(copies)
    logits = model.encode(batches, states.detach().repeated(copies), z.reshape(-1)).logits
    return log_likelihood(logits, batch_labels(batches)).view(copies, batch.n_documents)


def per_word(batch: Batch, value: Float[Tensor, "samples documents"]) -> Float[Tensor, "samples words"]:
    """Each document's value at each of its words."""
    return value.repeat_interleave(torch.from_numpy(batch.document_lengths), dim=1)


def pick(batch: Batch, z: Bool[np.ndarray, "samples words"], chosen: np.ndarray) -> Bool[np.ndarray, " words"]:
    """For every document the sample chosen for it."""
    picked: np.ndarray = z[np.repeat(chosen, batch.document_lengths), np.arange(batch.n_words)]
    return picked
