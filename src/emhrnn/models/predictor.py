"""What everything around a model may ask of it to predict. It takes no torch: models/model.py is what torch adds to it.

What a model can do beside `infer` it says by overriding a part of `Predictor`; what it leaves as it is here, it does
not need or cannot do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError
from emhrnn.shapes import Bool, Float, Int64

UNKNOWN_ID = -1  # of a user or product that training has not seen


@dataclass(frozen=True, eq=False)
class Inference:
    """What a trained model says of a batch."""

    logits: Float[np.ndarray, "documents classes"]
    v: Float[np.ndarray, "documents features"]  # document vectors
    z: Bool[np.ndarray, " words"] | None = None  # true where a word ends a phrase, for a model that chooses one z


class Predictor:
    """A model without anything special."""

    fits_at_once: ClassVar[bool] = False  # by `fit`, instead of by steps of gradient descent

    def infer(self, batch: Batch) -> Inference:
        """The prediction of a batch."""
        raise NotImplementedError

    def state_dict(self) -> Mapping[str, Any]:
        """What is saved, by name: arrays or tensors."""
        raise NotImplementedError

    def fit(self, batches: Iterable[Batch], seed: int) -> None:
        """Learn all there is to learn. `batches` is read several times: give a list, or an object that starts again at
        each `iter`."""
        raise NotImplementedError

    @property
    def parameter_count(self) -> int:
        """Numbers that training by gradient descent learns."""
        return 0

    @property
    def shares(self) -> Mapping[str, Any]:
        """By name, factors of its parts that are fitted on validation data, not learned: scalars that `fit_shares`
        changes in place; 1 until then."""
        return {}

    def fit_shares(self, batches: Iterable[Batch]) -> None:
        """Fit the shares to labelled documents."""

    def infer_phrases(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> Inference:
        """The prediction for given phrases; a model without latent phrases, or one that sums over all of them, has no
        use for them."""
        return self.infer(batch)

    def save_files(self, folder: Path) -> None:
        """Write what it is built from and is not among its weights, such as the configuration of an encoder."""

    # ------------------------------------------------------------------ phrases

    @property
    def segments(self) -> bool:
        """Whether it infers phrase ends that can be moved by a threshold."""
        return False

    @property
    def boundary_threshold(self) -> float | None:
        """The probability over which a word ends a phrase; None for a model that has no such threshold."""
        return None


def check_ids(kind: str, ids: Int64[np.ndarray, " documents"] | None, count: int) -> Int64[np.ndarray, " documents"]:
    """The ids of the users or products of documents, for a model that knows `count` of them.

    Raises:
        DataError: the documents have no ids, or one that the model does not know.
    """
    if ids is None:
        raise DataError(f"this model reads {kind} ids and the data has none; give data with a {kind} column")
    if ids.max() >= count:
        raise DataError(
            f"{kind} id {ids.max()} where the model knows {count}; ids that training has not seen must be {UNKNOWN_ID}"
        )
    return ids


def probabilities(
    logits: Float[np.ndarray, "documents classes"], *, multi_label: bool, temperature: float = 1.0
) -> Float[np.ndarray, "documents classes"]:
    """Of logits / temperature. The decision is that of temperature 1 to the last bit: rounding may make the two best
    classes equal at one temperature and not at the other, or an answer exactly 1/2."""
    plain = _sigmoid(logits) if multi_label else _softmax(logits)
    if temperature == 1.0:
        return plain
    scaled = logits / logits.dtype.type(temperature)
    if multi_label:
        result = _sigmoid(scaled)
        return np.where(np.sign(result - 0.5) == np.sign(plain - 0.5), result, plain)
    result, best = _softmax(scaled), plain.argmax(axis=1)
    tied = np.flatnonzero(result.argmax(axis=1) != best)
    top = result[tied].max(axis=1)
    result[tied, best[tied]] = np.nextafter(top, top + 1)
    return result


def _sigmoid(x: Float[np.ndarray, "documents classes"]) -> Float[np.ndarray, "documents classes"]:
    e = np.exp(-np.abs(x))
    result: np.ndarray = np.where(x >= 0, 1, e) / (1 + e)
    return result


def _softmax(x: Float[np.ndarray, "documents classes"]) -> Float[np.ndarray, "documents classes"]:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    result: np.ndarray = e / e.sum(axis=1, keepdims=True)
    return result
