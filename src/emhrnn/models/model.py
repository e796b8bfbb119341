"""What torch adds to a Predictor: a model of modules, `model(batch) -> Output`, and how it learns."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.models.output import Output
from emhrnn.models.predictor import Inference, Predictor
from emhrnn.shapes import Bool


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
