"""The measure of Table 1: which share of the indicators is recovered.

Without the label a model says z = 1[pi > 1/2], as at test time. With it, z = 1[E[z | y, w] > 1/2] by Bayes' rule over
all segmentations. Forced positions (the last token of each sentence) are always right; the paper counts them.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import exact_blocks
from emhrnn.em.steps import weigh
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.simulation.enumeration import all_log_p, of_labels


@dataclass(frozen=True)
class Recovery:
    """Shares of positions: of the free ones, and of all."""

    free: float
    all: float


def recovered(batch: Batch, found: Bool[np.ndarray, " words"], z: Bool[np.ndarray, " words"]) -> Recovery:
    right = (found == z) | batch.sentence_final
    return Recovery(free=float(right[~batch.sentence_final].mean()), all=float(right.mean()))


@torch.no_grad()
def without_label(model: EMHRNN, batch: Batch) -> Bool[np.ndarray, " words"]:
    z: np.ndarray = (model.words(batch).a > 0).numpy() | batch.sentence_final
    return z


@torch.no_grad()
def with_label(model: EMHRNN, batch: Batch) -> tuple[Bool[np.ndarray, " words"], float]:
    """And the mean log-likelihood of the labels, log p(y | w)."""
    states = model.words(batch)
    likelihood = of_labels(all_log_p(model, batch, states), batch)
    posterior = weigh(batch, states, exact_blocks(batch), likelihood)
    return (posterior.marginals() > 0.5).numpy(), float(posterior.evidence.mean())
