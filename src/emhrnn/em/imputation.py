"""zhat: the boundaries outside the block, and the phrases that a document gets when nobody enumerates.

prior       pi > 0.5                                       the paper; silent collapse when no pi is that large
rate        pi over the quantile that keeps the boundary rate; collapses only where all words have the same pi
posterior   gamma > 0.5 where the E-step gave one
gibbs       the last posterior sample of each training document, kept in a `SegmentationCache`
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import DataError


def above(batch: Batch, a: Float[Tensor, " words"], threshold: float = 0.0) -> Bool[np.ndarray, " words"]:
    """z = 1 where the logit of pi exceeds the threshold (0: pi > 0.5), and at sentence ends."""
    z: np.ndarray = (a.detach() > threshold).numpy() | batch.sentence_final
    return z


def rate_threshold(batch: Batch, a: Float[Tensor, " words"], rate: float) -> float | None:
    """The logit over which z = 1 makes a share `rate` of all words boundaries, the forced ones included: the Lagrange
    multiplier of the constraint mean z = rate. None where every word ends a sentence: that says nothing about it."""
    free, wanted = _free(batch, a, rate)
    if not len(free):
        return None
    return float(torch.quantile(free, min(max(1 - wanted, 0.0), 1.0)))


def rate_shift(batch: Batch, a: Float[Tensor, " words"], rate: float) -> float:
    """The number to subtract from every logit so that the mean of pi, sentence ends counted as 1, becomes `rate`: the
    Lagrange multiplier of that constraint on the prior."""
    free, wanted = _free(batch, a, rate)
    if not len(free) or not 0 < wanted < 1:  # sentences so short that their ends alone are enough, or too few
        return 0.0
    low, high = float(free.min()) - 20, float(free.max()) + 20
    for _ in range(25):  # the mean of pi falls in the shift: halve the interval
        middle = (low + high) / 2
        low, high = (middle, high) if float(torch.sigmoid(free - middle).mean()) > wanted else (low, middle)
    return (low + high) / 2


def _free(batch: Batch, a: Float[Tensor, " words"], rate: float) -> tuple[Float[Tensor, " free"], float]:
    """Logits of the words that do not end a sentence, and the share of them that must be boundaries to keep the rate.
    A document of weight 0 is not there."""
    counted = np.ones(batch.n_words, dtype=bool)
    if batch.weights is not None:
        counted = np.repeat(batch.weights > 0, batch.document_lengths)
    free = a.detach()[torch.from_numpy(counted & ~batch.sentence_final)].double()
    ends = int((counted & batch.sentence_final).sum())
    return free, (rate * int(counted.sum()) - ends) / max(len(free), 1)


def from_posterior(
    z: Bool[np.ndarray, " words"], gamma: Float[Tensor, " words"], mask: Bool[Tensor, " words"]
) -> Bool[np.ndarray, " words"]:
    """z with gamma > 0.5 wherever the E-step gave a gamma."""
    return np.where(mask.numpy(), (gamma > 0.5).numpy(), z)


def sample_prior(
    batch: Batch, a: Float[Tensor, " words"], generator: np.random.Generator
) -> Bool[np.ndarray, " words"]:
    """z ~ Bernoulli(pi), and 1 at sentence ends."""
    pi = torch.sigmoid(a.detach()).double().numpy()
    z: np.ndarray = (generator.random(batch.n_words) < pi) | batch.sentence_final
    return z


class SegmentationCache:
    """The current z of every training document, one bit per word, by row of the corpus.

    Each visit conditions on the cached z and puts its posterior sample back. With one block in each document
    (em.estep=local, em.blocks=1) that is block Gibbs sampling, and over the epochs the cache is a sample of the
    posterior of the whole document. More blocks are drawn all at once, each given the others as they were: that is
    faster, and no sample of the posterior where blocks depend on each other."""

    def __init__(self, words_per_row: Int64[np.ndarray, " rows"]) -> None:
        self.words = words_per_row
        self.offsets = np.concatenate([[0], np.cumsum((words_per_row + 7) // 8)])  # each row starts a new byte
        self.bits: UInt8[np.ndarray, " bytes"] = np.zeros(self.offsets[-1], dtype=np.uint8)
        self.visited: Bool[np.ndarray, " rows"] = np.zeros(len(words_per_row), dtype=bool)

    def read(self, batch: Batch, default: Bool[np.ndarray, " words"]) -> Bool[np.ndarray, " words"]:
        """The cached z of the batch; `default` for documents that were never written."""
        row, byte, bit = self._places(batch)
        cached = (self.bits[byte] >> bit & 1).astype(bool)
        return np.where(self.visited[row], cached, default)

    def write(self, batch: Batch, z: Bool[np.ndarray, " words"]) -> None:
        row, byte, bit = self._places(batch)
        self.bits[byte] = 0
        np.bitwise_or.at(self.bits, byte, z.astype(np.uint8) << bit)
        self.visited[row] = True

    def state_dict(self) -> dict[str, Tensor]:
        """Tensors for a checkpoint."""
        return {"bits": torch.from_numpy(self.bits), "visited": torch.from_numpy(self.visited)}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        bits, visited = state["bits"].numpy(), state["visited"].numpy()
        if bits.shape != self.bits.shape or visited.shape != self.visited.shape:
            raise DataError(
                f"the saved segmentations are of {len(visited)} documents in {len(bits)} bytes, this corpus has "
                f"{len(self.visited)} in {len(self.bits)}: resume on the corpus that the run was trained on"
            )
        self.bits[:], self.visited[:] = bits, visited

    def _places(
        self, batch: Batch
    ) -> tuple[Int64[np.ndarray, " words"], Int64[np.ndarray, " words"], UInt8[np.ndarray, " words"]]:
        """Row, byte and bit of every word of the batch."""
        wrong = np.flatnonzero(self.words[batch.rows] != batch.document_lengths)
        if len(wrong):
            row = batch.rows[wrong[0]]
            raise DataError(
                f"row {row} has {batch.document_lengths[wrong[0]]} words, {self.words[row]} when the cache was made: "
                "use the same corpus and the same length caps throughout a run"
            )
        document = np.repeat(np.arange(batch.n_documents), batch.document_lengths)
        t = np.arange(batch.n_words) - batch.word_offsets[document]
        row = batch.rows[document]
        return row, self.offsets[row] + t // 8, (t % 8).astype(np.uint8)
