r"""Responsibilities from one backward pass: first order in what the changed phrases hand on.

    log p(y | Z') ~ log p(y | Z) + sum over changed sentences i of < g_i, s_i(Z') - s_i(Z) >,    g_i = d log p / d s_i

so no document is encoded again. Nor is the rest of a sentence: behind the last flip comes a phrase end that Z has too,
the *join*, and from there on only the state differs.

    Z     ... [a b c] [d e] [f g] [h i j]         flip c:   ... [a b c d e] [f g] [h i j]
                              \_ tail _/                             |      \_ slopes _/
                                                          a new state, exact: the join

The attention of Z' over phrases is computed exactly up to the join; the tail enters with its weights and values under
Z, moved by their slopes in it. With w the weights before they are divided by their sum, all over the sum under Z,

    < g, s(Z') > ~ (sum over path of w < g, p > + sum over tail of beta < g, p > + slope . (state' - state))
                   / (sum over path of w + sum over tail of beta),             p = h2, or [h2; q] of a model with skip
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em import configurations
from emhrnn.em.blocks import Blocks
from emhrnn.em.likelihood import BUDGET, batch_labels, bytes_per_state
from emhrnn.em.phrases import phrase_vectors
from emhrnn.em.plan import Chunk, chunks, make_sentence_plan
from emhrnn.em.sentence_plan import SentencePlan
from emhrnn.layers.attention import attend
from emhrnn.layers.packing import pack
from emhrnn.layers.path_sums import Probe, path_sums
from emhrnn.layers.row_dots import row_dots
from emhrnn.layers.state_slopes import layer_pass
from emhrnn.models.em_hrnn import EMHRNN, WordStates
from emhrnn.models.output import log_likelihood


@torch.no_grad()
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
    if not len(blocks):
        return states.h1.new_zeros(0, 1 << blocks.length)
    expansion = _expand(model, batch, states, z)
    parts = []
    half = bytes_per_state(model) // 2  # no path goes on behind its join
    for chunk in chunks(batch, blocks, budget=budget, sentence_bytes=0, phrase_bytes=half):
        words = chunk.word_range
        plan = make_sentence_plan(chunk.batch, z[words], chunk.blocks)
        part = states.part(words, chunk.document_range)
        q = phrase_vectors(model, part, plan.segment_begin, plan.segment_end)  # (segments, word_features)
        here = expansion.part(batch, z, chunk)
        parts.append(_add_up(here.log_p, _gains(model, chunk.batch, q, plan, here), plan, chunk.blocks, z[words]))
    return torch.cat(parts)


@dataclass(frozen=True, eq=False)
class Expansion:
    """log p(y | Z), its gradients in the sentence vectors and in the states behind each phrase of Z, and what the
    phrases behind each phrase of Z add to the sums of attention."""

    log_p: Float[Tensor, " documents"]
    probe: Probe  # of sentences; slopes of the states behind phrases
    value: Float64[np.ndarray, " sentences"]  # < g, s(Z) >
    tail_weight: Float64[np.ndarray, " phrases"]
    tail_value: Float64[np.ndarray, " phrases"]

    def part(self, batch: Batch, z: Bool[np.ndarray, " words"], chunk: Chunk) -> "Expansion":
        """That of the documents of a chunk."""
        sentences = slice(*batch.document_offsets[[chunk.document_range.start, chunk.document_range.stop]])
        first = np.count_nonzero(z[: chunk.word_range.start])
        phrases = slice(first, first + np.count_nonzero(z[chunk.word_range]))
        probe = Probe(
            self.probe.g[sentences],
            self.probe.shift[sentences],
            tuple(slope[phrases] for slope in self.probe.slopes),
        )
        return Expansion(
            self.log_p[chunk.document_range],
            probe,
            self.value[sentences],
            self.tail_weight[phrases],
            self.tail_value[phrases],
        )


def _expand(model: EMHRNN, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"]) -> Expansion:
    """One pass, forward and backward, for all documents; they do not mix, so one sum will do."""
    ends = np.concatenate([[0], np.flatnonzero(z) + 1])
    offsets = np.searchsorted(ends, batch.sentence_offsets)  # the phrases of each sentence
    states = model.within_phrases(states.detach(), z)
    q, _ = attend(states.h1, states.scores, torch.from_numpy(ends))  # (phrases, word_features)
    phrases = layer_pass(model.phrase_layer, q, pack(offsets))
    with torch.enable_grad(), _parameters_fixed(model):
        h2 = phrases.h.detach().requires_grad_()  # (phrases, phrase_size)
        p = model.phrase_features(h2, q)
        scores = model.phrase_attention.scores(p)
        s, _ = attend(p, scores, torch.from_numpy(offsets))
        log_p = log_likelihood(model.classify(batch, s, states.d)[0], batch_labels(batch))
        g, d_h2 = torch.autograd.grad(log_p.sum(), (s, h2))
    sentence = np.repeat(np.arange(batch.n_sentences), np.diff(offsets))
    values = row_dots(p.detach(), torch.arange(len(p)), g, torch.from_numpy(sentence))
    shift, value, *tails = _tails(offsets, scores.detach().double().numpy(), values.double().numpy())
    probe = Probe(g, torch.from_numpy(shift), phrases.state_slopes(d_h2))
    return Expansion(log_p.detach(), probe, value, *tails)


@contextmanager
def _parameters_fixed(model: EMHRNN) -> Iterator[None]:
    """In this block a backward pass spends nothing on gradients of the parameters: only the states' are wanted."""
    learned = [p for p in model.parameters() if p.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def _tails(
    offsets: Int64[np.ndarray, " sentences_plus_1"],
    scores: Float64[np.ndarray, " phrases"],
    values: Float64[np.ndarray, " phrases"],
) -> tuple[
    Float64[np.ndarray, " sentences"],
    Float64[np.ndarray, " sentences"],
    Float64[np.ndarray, " phrases"],
    Float64[np.ndarray, " phrases"],
]:
    """Of each sentence: log of its sum of weights, and sum of beta times value. Of the phrases behind each phrase: sum
    of beta, and of beta times value."""
    starts, lengths = offsets[:-1], np.diff(offsets)
    highest = np.maximum.reduceat(scores, starts)
    shift = highest + np.log(np.add.reduceat(np.exp(scores - np.repeat(highest, lengths)), starts))
    beta = np.exp(scores - np.repeat(shift, lengths))
    sums = np.cumsum([beta, beta * values], axis=1)
    weight, value = np.repeat(sums[:, offsets[1:] - 1], lengths, axis=1) - sums
    return shift, np.add.reduceat(beta * values, starts), np.maximum(weight, 0), value


def _gains(
    model: EMHRNN,
    batch: Batch,
    q: Float[Tensor, "segments word_features"],
    plan: SentencePlan,
    expansion: Expansion,
) -> Float64[np.ndarray, " variants"]:
    """What each sentence variant adds to log p(y | Z): < g, s(Z') - s(Z) >."""
    nodes, last = plan.path_nodes, plan.path_nodes[plan.path_offsets[1:] - 1]
    of_z = nodes[: plan.path_offsets[batch.n_sentences]]  # the phrases of Z
    trees = np.empty_like(plan.phrases.inputs)  # the sentence that each node belongs to
    trees[nodes] = np.repeat(plan.sentences, np.diff(plan.path_offsets))
    ends = np.full_like(trees, -1)  # the slopes to follow from a node
    ends[last] = plan.joins
    ends[of_z] = np.arange(len(of_z))
    sums = path_sums(
        model.phrase_layer,
        model.phrase_attention,
        q,
        torch.from_numpy(plan.phrases.inputs),
        torch.from_numpy(plan.phrases.parents),
        plan.phrases.level_sizes,
        torch.from_numpy(trees),
        torch.from_numpy(ends),
        expansion.probe,
        skip=model.skip,
    )
    weights, values, along = (tensor.double().numpy() for tensor in sums)  # (nodes,)
    tail_value = expansion.tail_value - along[of_z]
    value = values[last] + along[last] + tail_value[plan.joins]
    gain: np.ndarray = value / (weights[last] + expansion.tail_weight[plan.joins]) - expansion.value[plan.sentences]
    gain[: batch.n_sentences] = 0
    return gain


def _add_up(
    log_p: Float[Tensor, " documents"],
    gain: Float64[np.ndarray, " variants"],
    plan: SentencePlan,
    blocks: Blocks,
    z: Bool[np.ndarray, " words"],
) -> Float[Tensor, "blocks configurations"]:
    """Every configuration's value: that of Z plus the gains of the sentences it changes."""
    parts = plan.parts
    row_gain = gain[plan.variants].astype(log_p.numpy().dtype)
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
