"""What torch adds to a Predictor: a model of modules, `model(batch) -> Output`, and how it learns; the likelihood of
labels; and the tables of those who wrote a document, or about what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.models.predictor import UNKNOWN_ID, Inference, Predictor, check_ids
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


class DocumentModel(nn.Module, Predictor):
    """A model of torch modules without anything special."""

    def infer(self, batch: Batch) -> Inference:
        with torch.inference_mode():
            return _in_arrays(self(batch))

    def infer_phrases(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> Inference:
        with torch.inference_mode():
            return _in_arrays(self.encode_phrases(batch, z))

    @property
    def parameter_count(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    # ------------------------------------------------------------------ how it learns

    def learning_rate_scales(self) -> dict[str, float]:
        """By parameter name, the share of the learning rate, for parts that learn at another rate than the rest."""
        return {}

    @property
    def row_decay(self) -> float:
        """Weight decay of the table of n-grams, on the rows that a step touches."""
        return 0.0

    def set_epoch(self, epoch: int) -> None:
        """Epochs are counted from 0; for a model that changes with them."""

    @property
    def uncounted(self) -> bool:
        """Whether `count` must see the training documents before the first step."""
        return False

    def count(self, batches: Iterable[Batch], class_weights: Tensor | None = None) -> None:
        """Take in what is counted, not learned, of more documents."""

    def take_sizes(self, tensors: Mapping[str, Tensor]) -> None:
        """Give buffers the sizes of these saved tensors, as far as the training data decide them."""

    # ------------------------------------------------------------------ phrases

    def encode_phrases(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> Output:
        """The prediction for given phrases; a model without latent phrases, or one that sums over all of them, has no
        use for them."""
        output: Output = self(batch)
        return output


def _in_arrays(output: Output) -> Inference:
    return Inference(output.logits.numpy(), output.v.numpy(), output.z)


class IdScores(nn.Module):
    """What each id says for the classes, 0 at first. An unknown id says nothing."""

    def __init__(self, kind: str, count: int, classes: int) -> None:
        super().__init__()
        self.kind = kind
        check_count(kind, count)
        self.table = nn.Parameter(torch.zeros(count, classes))

    def forward(self, ids: Int64[np.ndarray, " documents"] | None) -> Float[Tensor, "documents classes"]:
        scores, known = id_rows(self.kind, self.table, ids)
        return scores * known


def check_count(kind: str, count: int) -> None:
    """Raise a ConfigError where there are no ids."""
    if count < 1:
        raise ConfigError(
            f"this model reads {kind} ids and the data has none; give data with a {kind} column, or set model.ids=false"
        )


def id_rows(
    kind: str, table: Float[Tensor, "count size"], ids: Int64[np.ndarray, " documents"] | None
) -> tuple[Float[Tensor, "documents size"], Bool[Tensor, "documents 1"]]:
    """Of each id its row, any row for unknown ones; and which are known."""
    ids = check_ids(kind, ids, len(table))
    found = nn.functional.embedding(torch.from_numpy(np.maximum(ids, 0)), table)
    return found, torch.from_numpy(ids != UNKNOWN_ID)[:, None]
