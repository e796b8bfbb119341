"""Is the segmentation alive? What the training history records of it, epoch by epoch.

EM with latent boundaries dies in two ways: no phrase ends anywhere, or one ends at every word. Both look healthy in
the loss; these numbers show them, and `evaluation.phrases.collapse` tells it of the validation documents.
"""

from dataclasses import asdict, dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch


@dataclass(frozen=True)
class Segmentation:
    """Of the words seen since the last summary."""

    boundary_rate: float  # share of free positions (sentence ends left out) with z = 1
    mean_phrase_length: float  # words
    max_phrase_length: int
    pi_mean: float
    pi_entropy: float  # nats per free position; log 2 = 0.69 is undecided, 0 is certain

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


class Monitor:
    """Adds up batches; `summary` gives the epoch's numbers and starts anew."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._words = self._free = self._boundaries = self._phrases = self._longest = 0
        self._pi = self._entropy = 0.0

    def state_dict(self) -> dict[str, Tensor]:
        """The sums since the last summary, for a checkpoint."""
        counts = [self._words, self._free, self._boundaries, self._phrases, self._longest]
        return {"counts": torch.tensor(counts), "sums": torch.tensor([self._pi, self._entropy], dtype=torch.float64)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        counts = state["counts"].tolist()[:5]  # version 0.1 counted more
        self._words, self._free, self._boundaries, self._phrases, self._longest = counts
        self._pi, self._entropy = state["sums"].tolist()

    def update(self, batch: Batch, z: Bool[np.ndarray, " words"], pi: Float[np.ndarray, " words"]) -> None:
        """Add a batch with the phrase ends z that an E-step found."""
        free = ~batch.sentence_final
        self._words += batch.n_words
        self._free += int(free.sum())
        self._boundaries += int(z[free].sum())
        self._phrases += int(z.sum())
        self._longest = max(self._longest, int(np.diff(np.flatnonzero(z), prepend=-1).max()))
        p = pi[free].astype(np.float64)
        self._pi += float(p.sum())
        self._entropy -= float((_x_log_x(p) + _x_log_x(1 - p)).sum())

    @property
    def empty(self) -> bool:
        """True while there is nothing to sum up, as in epochs that learn no boundaries."""
        return self._words == 0

    def summary(self) -> Segmentation:
        free = max(self._free, 1)
        result = Segmentation(
            boundary_rate=self._boundaries / free,
            mean_phrase_length=self._words / max(self._phrases, 1),
            max_phrase_length=self._longest,
            pi_mean=self._pi / free,
            pi_entropy=self._entropy / free,
        )
        self._reset()
        return result


def _x_log_x(x: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    y: np.ndarray = x * np.log(np.maximum(x, 1e-300))
    return y
