"""Responsibilities from one backward pass: first order in the sentence vectors.

    log p(y | Z') ~ log p(y | Z) + sum over changed sentences i of < d log p / d s_i, s_i(Z') - s_i(Z) >

The vectors s_i(Z') are exact (words, phrases and their trie are computed as ever); only the sentence BiLSTM, its
attention and the output layer are replaced by their gradient at the current Z. No document is ever re-encoded.
"""

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em import configurations
from emhrnn.em.blocks import Blocks
from emhrnn.em.likelihood import BUDGET, batch_labels, bytes_per_state, sentence_vectors
from emhrnn.em.plan import chunks, make_sentence_plan
from emhrnn.em.sentence_plan import SentencePlan
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.models.output import log_likelihood


def first_order_likelihood(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    *,
    budget: int = BUDGET,
) -> Float[Tensor, "blocks configurations"]:
    """As `configuration_likelihood`, approximately."""
    labels = batch_labels(batch)
    parts = []
    for chunk in chunks(batch, blocks, bytes_per_state=bytes_per_state(model), budget=budget, per_document=False):
        words = chunk.word_range
        plan = make_sentence_plan(chunk.batch, z[words], chunk.blocks)
        with torch.no_grad():
            s = sentence_vectors(model, states.h1[words], states.scores[words], plan)  # (variants, phrase_size)
        log_p, gradient = _value_and_gradient(model, chunk.batch, s, labels[chunk.document_range])
        sentence = torch.from_numpy(plan.sentences)
        gain = ((s - s[sentence]) * gradient[sentence]).sum(1)  # (variants,), 0 for the unchanged
        parts.append(_add_up(log_p, gain, plan, chunk.blocks, z[words]))
    return torch.cat(parts) if parts else states.h1.new_zeros(0, 1 << blocks.length)


def _value_and_gradient(
    model: EMHRNN, batch: Batch, s: Float[Tensor, "variants phrase_size"], labels: Tensor
) -> tuple[Float[Tensor, " documents"], Float[Tensor, "sentences phrase_size"]]:
    """log p(y | Z) and its gradient in the sentence vectors of Z. Documents do not mix, so one sum serves all."""
    with torch.enable_grad():
        s = s[: batch.n_sentences].detach().requires_grad_()
        log_p = log_likelihood(model.classify(batch, s)[0], labels)
        (gradient,) = torch.autograd.grad(log_p.sum(), s)
    return log_p.detach(), gradient


def _add_up(
    log_p: Float[Tensor, " documents"],
    gain: Float[Tensor, " variants"],
    plan: SentencePlan,
    blocks: Blocks,
    z: Bool[np.ndarray, " words"],
) -> Float[Tensor, "blocks configurations"]:
    """Every configuration's value: that of Z plus the gains of the sentences it changes."""
    parts = plan.parts
    row_gain = gain[torch.from_numpy(plan.variants)].numpy()
    flips = np.arange(1 << blocks.length) ^ configurations.current(blocks, z)[:, None]  # (blocks, configurations)
    total = np.repeat(log_p.numpy()[blocks.documents][:, None], flips.shape[1], axis=1)
    for column in range(parts.table.shape[1]):
        part = parts.table[:, column]
        some = np.flatnonzero(part >= 0)
        part = part[some, None]
        part_flips = (flips[some] >> parts.first_slot[part]) & ((1 << parts.width[part]) - 1)
        total[some] += row_gain[parts.offsets[part] + part_flips]
    total[~configurations.valid(blocks)] = -np.inf
    return torch.from_numpy(total)
