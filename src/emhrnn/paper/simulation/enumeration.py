"""All 256 segmentations of every simulated document at once; what follows from them when theta is known.

With theta fixed, log p(y | Z, w) of all of them is computed once, as a table; every E-step, by whatever blocks, then
only reads it.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import Blocks, current, exact_blocks
from emhrnn.em.likelihood import batch_labels, document_logits, sentence_vectors
from emhrnn.em.plan import make_plan
from emhrnn.models.em_hrnn import EMHRNN, WordStates

DOCUMENTS = 500  # at a time: their states stay in the cache


@torch.no_grad()
def all_log_p(model: EMHRNN, batch: Batch, states: WordStates) -> Float[Tensor, "documents configurations classes"]:
    """log p(y | Z, w) of every class y and every Z. Configuration c sets the document's j-th free word to bit j."""
    parts = []
    for begin in range(0, batch.n_documents, DOCUMENTS):
        end = min(begin + DOCUMENTS, batch.n_documents)
        part, words = batch.part(begin, end), slice(*batch.word_offsets[[begin, end]].tolist())
        plan = make_plan(part, part.sentence_final, exact_blocks(part))
        s = sentence_vectors(model, states.part(words, slice(begin, end)), plan.sentences)
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
