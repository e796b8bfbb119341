"""What can be exported, and whether what was written computes what the model does."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float32

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError, TrainingError
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.training.run import Run

CLOSE = 1e-4
TRIED = 20  # random documents

Predict = Callable[[Batch], Float32[np.ndarray, "documents classes"]]  # probabilities


def exportable(run: Run) -> EMHRNN:
    """The run's model, or a ConfigError where it is no em-hrnn with one level and learned boundaries."""
    model = run.model
    if isinstance(model, EMHRNN) and model.rule is None:
        return model
    what = f"segmentation {run.config.model.segmentation}" if isinstance(model, EMHRNN) else run.told_model
    raise ConfigError(
        f"this run is {what}; only em-hrnn with one level and learned boundaries can be exported, train one"
    )


def checked_difference(run: Run, predict: Predict) -> float:
    """The largest difference of a probability on random documents; a TrainingError if it is not small."""
    rng = np.random.default_rng(0)
    documents = [
        [rng.integers(0, len(run.vocabulary), rng.integers(1, 30)).tolist() for _ in range(rng.integers(1, 8))]
        for _ in range(TRIED)
    ]
    batch = Batch.from_lists(documents)
    with torch.inference_mode():
        expected = run.probabilities(run.model(batch).logits).numpy()
    difference = float(np.abs(predict(batch) - expected).max())
    if not difference < CLOSE:
        raise TrainingError(f"the exported model differs by {difference:.1e} on random documents; please report it")
    return difference


def arrays(batch: Batch) -> dict[str, np.ndarray]:
    """The inputs of every exported model."""
    return {
        "words": batch.words,
        "sentence_lengths": batch.sentence_lengths,
        "document_lengths": np.diff(batch.document_offsets),
    }
