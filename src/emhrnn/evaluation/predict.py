"""Class probabilities of a whole corpus, and how long the phrases were that led to them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from emhrnn.corpus.batch import Batch, BatchPlan
from emhrnn.evaluation.scores import PhraseLengths, count_phrase_lengths
from emhrnn.models.predictor import Inference, Predictor, probabilities
from emhrnn.shapes import Float32, Int64

BATCH_WORDS = 16_000  # larger batches no longer gain, and would leave the cache


@dataclass(frozen=True, eq=False)
class Predictions:
    """In the order of the corpus."""

    probabilities: Float32[np.ndarray, "documents classes"]
    logits: Float32[np.ndarray, "documents classes"]  # before the temperature
    phrases: PhraseLengths | None  # None for models without phrases


@runtime_checkable
class Documents(Protocol):
    """What can be cut into batches: a corpus, or a batch of any size."""

    @property
    def lengths(self) -> Int64[np.ndarray, " documents"]: ...
    def __len__(self) -> int: ...
    def batch(self, rows: Int64[np.ndarray, " rows"]) -> Batch: ...


def predict(
    model: Predictor,
    documents: Documents,
    *,
    multi_label: bool,
    temperature: float = 1.0,
    on_batch: Callable[[Batch, Inference], None] | None = None,
) -> Predictions:
    """Documents of similar length go together. `on_batch` sees every batch, for progress or for more measurements."""
    logits: np.ndarray | None = None
    phrases: list[Int64[np.ndarray, " lengths"]] = []  # of each batch, by length
    for rows in BatchPlan(documents.lengths, words=BATCH_WORDS).in_order():
        batch = documents.batch(rows)
        output = model.infer(batch)
        if logits is None:
            logits = np.empty((len(documents), output.logits.shape[1]), dtype=np.float32)
        logits[rows] = output.logits
        if output.z is not None:
            phrases.append(count_phrase_lengths(output.z))
        if on_batch is not None:
            on_batch(batch, output)
    if logits is None:
        raise ValueError("predict needs at least one document")
    shown = probabilities(logits, multi_label=multi_label, temperature=temperature)
    histogram = np.zeros(max(map(len, phrases), default=0), dtype=np.int64)
    for counts in phrases:
        histogram[: len(counts)] += counts
    return Predictions(shown, logits, PhraseLengths.of(histogram) if histogram.any() else None)
