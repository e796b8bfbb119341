"""What everything around a model may ask of it.

A model is `model(batch) -> Output`. What it can do beside that it says by overriding a part of `DocumentModel`; what a
model leaves as it is here, it does not need or cannot do.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Int64
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.models.ngrams import NGrams, Shares
from emhrnn.models.output import Output


class DocumentModel(nn.Module):
    """A model without anything special."""

    # ------------------------------------------------------------------ how it learns

    fits_at_once: ClassVar[bool] = False  # by `fit`, instead of by steps of gradient descent

    def fit(self, batches: Iterable[Batch], seed: int) -> None:
        """Learn all there is to learn. `batches` is read several times: give a list, or an object that starts anew at
        each `iter`."""
        raise NotImplementedError

    def learning_rate_scales(self) -> dict[str, float]:
        """By parameter name, the share of the learning rate, for parts that learn at another rate than the rest."""
        return {}

    def set_epoch(self, epoch: int) -> None:
        """Epochs are counted from 0; for a model that changes with them."""

    @property
    def uncounted(self) -> bool:
        """Whether `count` must see the training documents before the first step."""
        return False

    def count(self, batches: Iterable[Batch], class_weights: Tensor | None = None) -> None:
        """Take in what is counted, not learned, of more documents."""

    def save_files(self, folder: Path) -> None:
        """Write what it is built from and is not among its weights, such as the configuration of an encoder."""

    # ------------------------------------------------------------------ words that are looked up

    def precompute_words(self, words: Int64[np.ndarray, " some"] | None = None) -> None:
        """For inference: what can be computed once for each word of the vocabulary, or for some of them. After the
        weights change, call this again or `forget_words`."""

    def precompute_for(self, words: int) -> bool:
        """`precompute_words`, if it pays for so many words and was not done yet. Whether it was done now."""
        return False

    def forget_words(self) -> None:
        """Undo `precompute_words`."""

    # ------------------------------------------------------------------ phrases and experts

    @property
    def segments(self) -> bool:
        """Whether it infers phrase ends that can be moved by a threshold."""
        return False

    @property
    def boundary_threshold(self) -> float | None:
        """The probability over which a word ends a phrase; None for a model that has no such threshold."""
        return None

    def encode_phrases(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> Output:
        """The prediction for given phrases; a model without latent phrases, or one that sums over all of them, has no
        use for them."""
        output: Output = self(batch)
        return output

    @property
    def experts(self) -> NGrams | None:
        """The n-grams that add to the logits as an expert of their own, with a share that can be fitted."""
        return None

    def weigh(self, shares: Shares) -> dict[str, Tensor]:
        """Scale what each expert adds to the logits, once training is done. What was scaled, by name, as it was."""
        raise NotImplementedError
