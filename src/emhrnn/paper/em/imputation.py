"""zhat: the boundaries outside the blocks, and those of a document of which nothing is enumerated.

prior   pi > 0.5, the paper's rule; it finds no boundary at all where no pi is that large
rate    pi over the quantile that keeps the boundary rate; it fails only where all words have the same pi
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch


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


def sample_prior(
    batch: Batch, a: Float[Tensor, " words"], generator: np.random.Generator
) -> Bool[np.ndarray, " words"]:
    """z ~ Bernoulli(pi), and 1 at sentence ends."""
    pi = torch.sigmoid(a.detach()).double().numpy()
    z: np.ndarray = (generator.random(batch.n_words) < pi) | batch.sentence_final
    return z
