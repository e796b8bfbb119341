"""What the best possible reader could recover: one who knows the teacher, the tokens and the label, but no rule for z.

To it, z is a coin toss before the label is seen: p(Z | x) = 1 / 256. Then

    p(y | x)      = mean over Z of p(y | Z, x)
    I(z; y | x)   = H(y | x) - H(y | Z, x)                 bits that a label carries about the boundaries of a document
    p(Z | y, x)   = p(y | Z, x) / (256 p(y | x))           the oracle says 1 where E[z_t | y, x] > 1/2
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import bit_table, exact_blocks
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.simulation.enumeration import all_log_p, of_labels


@dataclass(frozen=True)
class Oracle:
    """Entropies in bits, recoveries as shares."""

    label_entropy: float  # H(y)
    information: float  # I(z; y | x)
    free: float  # recovery of the free positions
    all: float  # of all positions, the forced ones included


@torch.no_grad()
def consult(teacher: EMHRNN, batch: Batch, z: Bool[np.ndarray, " words"]) -> Oracle:
    """`z` is used only to see how often the oracle is right."""
    log_p = all_log_p(teacher, batch, teacher.words(batch)).double()  # (documents, configurations, classes)
    p = log_p.exp()
    information = _entropy(p.mean(1)) - _entropy(p)
    r = torch.softmax(of_labels(log_p, batch), dim=1)  # (documents, configurations)
    blocks = exact_blocks(batch)
    gamma = r @ torch.from_numpy(bit_table(blocks.length).astype(float))  # (documents, free words)
    right = (gamma.numpy() > 0.5) == z[blocks.positions]
    free = float(right.mean())
    share = right.size / batch.n_words
    assert batch.labels is not None
    counts = torch.bincount(torch.from_numpy(batch.labels)).double()
    return Oracle(_entropy((counts / counts.sum())[None]), information, free, share * free + 1 - share)


def _entropy(p: torch.Tensor) -> float:
    """Mean entropy of the distributions in the last dimension, in bits."""
    return float(torch.special.entr(p).sum(-1).mean()) / math.log(2)
