"""What every model gives back for a batch, and the likelihood of labels under it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from emhrnn.shapes import Bool, Float, Int64


@dataclass(frozen=True, eq=False)
class Output:
    """Scores of a batch and, where the model has them, the weights that lead to them.

    Phrases are the runs of words that end where z is true; `phrase_offsets` marks them among the words and
    `sentence_phrase_offsets` marks each sentence among the phrases.
    """

    logits: Float[Tensor, "documents classes"]
    v: Float[Tensor, "documents features"]  # document vectors
    z: Bool[np.ndarray, " words"] | None = None  # true where a word ends a phrase
    alpha: Float[Tensor, " words"] | None = None  # weight of each word in its phrase
    beta: Float[Tensor, " phrases"] | None = None  # weight of each phrase in its sentence
    gamma: Float[Tensor, " sentences"] | None = None  # weight of each sentence in its document
    pi: Float[Tensor, " words"] | None = None  # probability that a word ends a phrase
    joint: bool = False  # alpha and beta are of one softmax over the words and phrases of a sentence (MHS-RNN)

    def detach(self) -> "Output":
        """Without gradients."""
        values = vars(self).items()
        parts: dict[str, Any] = {name: value.detach() for name, value in values if isinstance(value, Tensor)}
        return replace(self, **parts)


Labels = Int64[Tensor, " documents"] | Float[Tensor, "documents classes"]


def log_likelihood(logits: Float[Tensor, "documents classes"], labels: Labels) -> Float[Tensor, " documents"]:
    """log p(y | ...) of each document: one class out of C, or for multi-label data C independent yes/no answers."""
    if labels.dtype == torch.int64:
        return torch.log_softmax(logits, dim=1).gather(1, labels[:, None]).squeeze(1)
    # log sigmoid(x) where the label is 1, log sigmoid(-x) where it is 0
    return -F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none").sum(dim=1)
