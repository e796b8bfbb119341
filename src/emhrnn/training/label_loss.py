"""Minus the log-likelihood of labels, as training uses it."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.models.output import log_likelihood


@dataclass(frozen=True, eq=False)
class LabelLoss:
    """Minus the log-likelihood of the labels, averaged over documents, with class weights and label smoothing."""

    class_weights: Float[Tensor, " classes"] | None = None
    smoothing: float = 0.0

    def __call__(self, logits: Float[Tensor, "documents classes"], labels: np.ndarray) -> Float[Tensor, ""]:
        y = torch.from_numpy(labels)
        loss = -log_likelihood(logits, y)  # (documents,)
        if self.smoothing and y.ndim == 1:
            # every class gets smoothing / C of the target
            uniform = -torch.log_softmax(logits, dim=1).mean(dim=1)
            loss = (1 - self.smoothing) * loss + self.smoothing * uniform
        if self.class_weights is None or y.ndim == 2:
            return loss.mean()
        weights = self.class_weights[y]
        return (weights * loss).sum() / weights.sum()


def balanced_weights(labels: np.ndarray, classes: int) -> Float[Tensor, " classes"]:
    """Weights under which every class counts the same: documents / (classes * documents of the class)."""
    counts = np.bincount(labels, minlength=classes)
    return torch.from_numpy(len(labels) / (classes * np.maximum(counts, 1))).float()


def labels_of(batch: Batch) -> np.ndarray:
    """The labels of a training batch, which always has them."""
    if batch.labels is None:
        raise ValueError("a training batch needs labels")
    return batch.labels
