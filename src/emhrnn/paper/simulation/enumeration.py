"""All 256 segmentations of every simulated document at once, and what follows from them.

With theta fixed, log p(y | Z, w) of all of them is computed once, as a table; every E-step, by whatever blocks, then
only reads it. The oracle knows the teacher, the tokens and the label, but no rule for z. To it p(Z | x) = 1 / 256, so

    p(y | x)      = mean over Z of p(y | Z, x)
    I(z; y | x)   = H(y | x) - H(y | Z, x)                 bits that a label carries about the boundaries of a document
    p(Z | y, x)   = p(y | Z, x) / (256 p(y | x))           the oracle says 1 where E[z_t | y, x] > 1/2

Recovery is the measure of Table 1: which share of the indicators is right. Without the label a model says
z = 1[pi > 1/2], as at test time. With it, z = 1[E[z | y, w] > 1/2] by Bayes' rule over all segmentations. Forced
positions (the last token of each sentence) are always right; the paper counts them.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.paper.em.blocks import Blocks, bit_table, current, exact_blocks
from emhrnn.paper.em.likelihood import batch_labels, document_logits, sentence_vectors
from emhrnn.paper.em.plan import make_plan
from emhrnn.paper.em.steps import weigh
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.shapes import Bool, Float

DOCUMENTS = 500  # at a time: their states stay in the cache


@torch.no_grad()
def all_log_p(model: EMHRNN, batch: Batch, states: WordStates) -> Float[Tensor, "documents configurations classes"]:
    """log p(y | Z, w) of every class y and every Z. Configuration c sets the document's j-th free word to bit j."""
    parts = []
    for begin in range(0, batch.n_documents, DOCUMENTS):
        end = min(begin + DOCUMENTS, batch.n_documents)
        part, words = batch.part(begin, end), slice(*batch.word_offsets[[begin, end]].tolist())
        plan = make_plan(part, part.sentence_final, exact_blocks(part))
        s = sentence_vectors(model, states.part(words), plan.sentences)
        logits = document_logits(model, s, plan.documents)  # (variants, classes)
        parts.append(torch.log_softmax(logits, dim=1)[torch.from_numpy(plan.documents.configurations)])
    return torch.cat(parts)


def of_labels(
    log_p: Float[Tensor, "documents configurations classes"], batch: Batch
) -> Float[Tensor, "documents configurations"]:
    """log p(y | Z, w) of the labels that the documents have."""
    y = batch_labels(batch)[:, None, None].expand(-1, log_p.shape[1], 1)
    return log_p.gather(2, y).squeeze(2)


def block_likelihood(
    table: Float[Tensor, "documents all_configurations"], batch: Batch, z: Bool[np.ndarray, " words"], blocks: Blocks
) -> Float[Tensor, "blocks configurations"]:
    """What `configuration_likelihood` computes, read from the table of a whole document."""
    whole = exact_blocks(batch)
    slot = np.zeros(batch.n_words, dtype=np.int64)  # which bit of the table's number a word is
    slot[whole.positions] = np.arange(whole.length)
    present = blocks.positions >= 0
    bit = np.where(present, 1 << slot[blocks.positions], 0)  # (blocks, length)
    outside = current(whole, z)[blocks.documents] & ~bit.sum(axis=1)
    number = np.arange(1 << blocks.length)  # configurations of the block
    inside = ((number[None, :, None] >> np.arange(blocks.length)) & 1) @ bit[:, :, None]  # (blocks, configurations, 1)
    rows = table[torch.from_numpy(blocks.documents)]
    likelihood = rows.gather(1, torch.from_numpy(outside[:, None] + inside[:, :, 0]))
    exists = torch.from_numpy(number < (1 << blocks.free)[:, None])
    return torch.where(exists, likelihood, -torch.inf)


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


@dataclass(frozen=True)
class Recovery:
    """Shares of positions: of the free ones, and of all."""

    free: float
    all: float


def recovered(batch: Batch, found: Bool[np.ndarray, " words"], z: Bool[np.ndarray, " words"]) -> Recovery:
    """How often `found` is `z`."""
    right = (found == z) | batch.sentence_final
    return Recovery(free=float(right[~batch.sentence_final].mean()), all=float(right.mean()))


@torch.no_grad()
def without_label(model: EMHRNN, batch: Batch) -> Bool[np.ndarray, " words"]:
    """z as the model says it at test time."""
    z: np.ndarray = (model.words(batch).a > 0).numpy() | batch.sentence_final
    return z


@torch.no_grad()
def with_label(model: EMHRNN, batch: Batch) -> tuple[Bool[np.ndarray, " words"], float]:
    """And the mean log-likelihood of the labels, log p(y | w)."""
    states = model.words(batch)
    likelihood = of_labels(all_log_p(model, batch, states), batch)
    posterior = weigh(batch, states, exact_blocks(batch), likelihood)
    return (posterior.marginals() > 0.5).numpy(), float(posterior.evidence.mean())
