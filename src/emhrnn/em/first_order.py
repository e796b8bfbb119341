r"""Responsibilities from one backward pass: first order in what the changed phrases hand on.

    log p(y | Z') ~ log p(y | Z) + sum over changed sentences i of < g_i, s_i(Z') - s_i(Z) >,    g_i = d log p / d s_i

so no document is encoded again. Nor is the rest of a sentence: behind the last flip comes a phrase end that Z has too,
the *join*, and from there on only the state (h, c) differs.

    Z     ... [a b c] [d e] [f g] [h i j]         flip c:   ... [a b c d e] [f g] [h i j]
                              \_ tail _/                             |      \_ slopes _/
                                                          a new state, exact: the join

The attention of Z' over phrases is computed exactly up to the join; the tail enters with its weights and values under
Z, moved by their slopes in (h, c). With w the weights before they are divided by their sum, all over the sum under Z,

    < g, s(Z') > ~ (sum over path of w < g, h2 > + sum over tail of beta < g, h2 > + slope . (state' - state))
                   / (sum over path of w + sum over tail of beta)
"""

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.em import configurations
from emhrnn.em.blocks import Blocks
from emhrnn.em.likelihood import BUDGET, batch_labels, bytes_per_state, phrase_vectors
from emhrnn.em.plan import chunks, make_sentence_plan
from emhrnn.em.sentence_plan import SentencePlan
from emhrnn.layers.forest import forest_states
from emhrnn.layers.packing import pack
from emhrnn.layers.row_dots import row_dots
from emhrnn.layers.state_slopes import state_slopes
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
    labels = batch_labels(batch)
    parts = []
    for chunk in chunks(batch, blocks, bytes_per_state=bytes_per_state(model), budget=budget, per_document=False):
        words = chunk.word_range
        plan = make_sentence_plan(chunk.batch, z[words], chunk.blocks)
        q = phrase_vectors(states.h1[words], states.scores[words], plan)  # (segments, word_features)
        log_p, gain = _gains(model, chunk.batch, q, plan, labels[chunk.document_range])
        parts.append(_add_up(log_p, gain, plan, chunk.blocks, z[words]))
    return torch.cat(parts) if parts else states.h1.new_zeros(0, 1 << blocks.length)


def _gains(
    model: EMHRNN, batch: Batch, q: Float[Tensor, "segments word_features"], plan: SentencePlan, labels: Tensor
) -> tuple[Float[Tensor, " documents"], Float[np.ndarray, " variants"]]:
    """log p(y | Z), and what each sentence variant adds to it."""
    sentences = torch.from_numpy(plan.sentences)
    inputs, nodes = torch.from_numpy(plan.phrases.inputs), torch.from_numpy(plan.path_nodes)
    h, c = forest_states(
        model.phrase_layer, q, inputs, torch.from_numpy(plan.phrases.parents), plan.phrases.level_sizes
    )  # (nodes, phrase_size)
    scores = model.phrase_attention.scores(h)  # (nodes,)

    offsets = plan.path_offsets[: batch.n_sentences + 1]  # of the phrases of Z
    of_z = nodes[: offsets[-1]]  # their nodes
    h_z, c_z = h.index_select(0, of_z), c.index_select(0, of_z)  # (phrases, phrase_size)
    log_p, g, dh = _value_and_gradients(model, batch, h_z, offsets, labels)
    q_z = q.index_select(0, inputs.index_select(0, of_z))
    slopes = state_slopes(model.phrase_layer, q_z, dh, pack(offsets))  # of h and c behind each phrase

    joins = torch.from_numpy(plan.joins)
    last = nodes.index_select(0, torch.from_numpy(plan.path_offsets[1:] - 1))  # (variants,) each path's last node
    moved = row_dots(h, last, slopes[0], joins) + row_dots(c, last, slopes[1], joins)
    unmoved = (h_z * slopes[0] + c_z * slopes[1]).sum(1)  # (phrases,)
    of_node = torch.empty_like(inputs)  # the sentence that each node belongs to
    of_node[nodes] = torch.repeat_interleave(sentences, torch.from_numpy(np.diff(plan.path_offsets)))
    values = row_dots(h, torch.arange(len(h)), g, of_node)  # (nodes,)
    tail_move = moved.numpy().astype(np.float64) - unmoved.numpy()[plan.joins]
    return log_p, _pooled_gains(plan, offsets, scores.double().numpy(), values.double().numpy(), tail_move)


def _pooled_gains(
    plan: SentencePlan,
    offsets: Int64[np.ndarray, " sentences_plus_1"],
    scores: Float64[np.ndarray, " nodes"],
    values: Float64[np.ndarray, " nodes"],
    tail_move: Float64[np.ndarray, " variants"],
) -> Float64[np.ndarray, " variants"]:
    """< g, s(Z') - s(Z) >. In double precision no sum of weights leaves the range of numbers."""
    of_z = plan.path_nodes[: offsets[-1]]
    highest = np.maximum.reduceat(scores[of_z], offsets[:-1])
    shift = highest + np.log(np.add.reduceat(np.exp(scores[of_z] - np.repeat(highest, np.diff(offsets))), offsets[:-1]))
    tail_weight, tail_value, now = _tails(
        offsets, np.exp(scores[of_z] - np.repeat(shift, np.diff(offsets))), values[of_z]
    )
    path_lengths = np.diff(plan.path_offsets)
    weights = np.exp(scores[plan.path_nodes] - np.repeat(shift[plan.sentences], path_lengths))
    starts = plan.path_offsets[:-1]
    total = np.add.reduceat(weights, starts) + tail_weight[plan.joins]
    value = np.add.reduceat(weights * values[plan.path_nodes], starts) + tail_value[plan.joins] + tail_move
    gain: np.ndarray = value / total - now[plan.sentences]
    gain[: len(offsets) - 1] = 0
    return gain


def _tails(
    offsets: Int64[np.ndarray, " sentences_plus_1"],
    beta: Float64[np.ndarray, " phrases"],
    values: Float64[np.ndarray, " phrases"],
) -> tuple[Float64[np.ndarray, " phrases"], Float64[np.ndarray, " phrases"], Float64[np.ndarray, " sentences"]]:
    """Of the phrases behind each phrase of Z: sum of beta, sum of beta times value; the latter of whole sentences."""
    sums = np.cumsum([beta, beta * values], axis=1)
    ends = np.repeat(sums[:, offsets[1:] - 1], np.diff(offsets), axis=1)
    weight, value = ends - sums
    return np.maximum(weight, 0), value, np.add.reduceat(beta * values, offsets[:-1])


def _value_and_gradients(
    model: EMHRNN,
    batch: Batch,
    h_z: Float[Tensor, "phrases phrase_size"],
    offsets: Int64[np.ndarray, " sentences_plus_1"],
    labels: Tensor,
) -> tuple[Float[Tensor, " documents"], Float[Tensor, "sentences phrase_size"], Float[Tensor, "phrases phrase_size"]]:
    """log p(y | Z), and its gradients in sentence vectors and phrase outputs. Documents do not mix: one sum will do."""
    with torch.enable_grad():
        h_z = h_z.requires_grad_()
        s, _ = model.phrase_attention(h_z, torch.from_numpy(offsets))
        log_p = log_likelihood(model.classify(batch, s)[0], labels)
        g, dh = torch.autograd.grad(log_p.sum(), (s, h_z))
    h_z.requires_grad_(False)
    return log_p.detach(), g, dh


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
