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
from emhrnn.em.likelihood import BUDGET, batch_labels, bytes_per_state, phrase_vectors
from emhrnn.em.plan import Chunk, chunks, make_sentence_plan
from emhrnn.em.sentence_plan import SentencePlan
from emhrnn.layers.attention import attend
from emhrnn.layers.forest import forest_states
from emhrnn.layers.packing import pack
from emhrnn.layers.row_dots import row_dots
from emhrnn.layers.state_slopes import lstm_pass
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
    for chunk in chunks(batch, blocks, bytes_per_state=bytes_per_state(model), budget=budget, per_document=False):
        words = chunk.word_range
        plan = make_sentence_plan(chunk.batch, z[words], chunk.blocks)
        q = phrase_vectors(states.h1[words], states.scores[words], plan)  # (segments, word_features)
        here = expansion.part(batch, z, chunk)
        parts.append(_add_up(here.log_p, _gains(model, chunk.batch, q, plan, here), plan, chunk.blocks, z[words]))
    return torch.cat(parts)


@dataclass(frozen=True, eq=False)
class Expansion:
    """log p(y | Z) and its gradients: in the sentence vectors, and in the state (h, c) behind each phrase of Z."""

    log_p: Float[Tensor, " documents"]
    g: Float[Tensor, "sentences phrase_size"]
    slope_h: Float[Tensor, "phrases phrase_size"]
    slope_c: Float[Tensor, "phrases phrase_size"]

    def part(self, batch: Batch, z: Bool[np.ndarray, " words"], chunk: Chunk) -> "Expansion":
        """That of the documents of a chunk."""
        sentences = slice(*batch.document_offsets[[chunk.document_range.start, chunk.document_range.stop]])
        first = np.count_nonzero(z[: chunk.word_range.start])
        phrases = slice(first, first + np.count_nonzero(z[chunk.word_range]))
        return Expansion(
            self.log_p[chunk.document_range], self.g[sentences], self.slope_h[phrases], self.slope_c[phrases]
        )


def _expand(model: EMHRNN, batch: Batch, states: WordStates, z: Bool[np.ndarray, " words"]) -> Expansion:
    """One pass, forward and backward, for all documents; they do not mix, so one sum will do."""
    ends = np.concatenate([[0], np.flatnonzero(z) + 1])
    offsets = np.searchsorted(ends, batch.sentence_offsets)  # the phrases of each sentence
    q, _ = attend(states.h1.detach(), states.scores.detach(), torch.from_numpy(ends))  # (phrases, word_features)
    phrases = lstm_pass(model.phrase_layer, q, pack(offsets))
    with torch.enable_grad(), _parameters_fixed(model):
        h2 = phrases.h.detach().requires_grad_()  # (phrases, phrase_size)
        s, _ = model.phrase_attention(h2, torch.from_numpy(offsets))
        log_p = log_likelihood(model.classify(batch, s)[0], batch_labels(batch))
        g, d_h2 = torch.autograd.grad(log_p.sum(), (s, h2))
    return Expansion(log_p.detach(), g, *phrases.state_slopes(d_h2))


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


def _gains(
    model: EMHRNN,
    batch: Batch,
    q: Float[Tensor, "segments word_features"],
    plan: SentencePlan,
    expansion: Expansion,
) -> Float64[np.ndarray, " variants"]:
    """What each sentence variant adds to log p(y | Z)."""
    trie = plan.phrases
    inputs, nodes = torch.from_numpy(trie.inputs), torch.from_numpy(plan.path_nodes)
    h, c = forest_states(
        model.phrase_layer, q, inputs, torch.from_numpy(trie.parents), trie.level_sizes
    )  # (nodes, ...)
    scores = model.phrase_attention.scores(h)  # (nodes,)
    offsets = plan.path_offsets[: batch.n_sentences + 1]  # of the phrases of Z

    def along_slopes(node: Int64[Tensor, " n"], phrase: Int64[Tensor, " n"]) -> Float64[np.ndarray, " n"]:
        along = row_dots(h, node, expansion.slope_h, phrase) + row_dots(c, node, expansion.slope_c, phrase)
        return along.double().numpy()

    last = nodes.index_select(0, torch.from_numpy(plan.path_offsets[1:] - 1))  # each path's last node
    unmoved = along_slopes(nodes[: offsets[-1]], torch.arange(offsets[-1]))  # (phrases,)
    tail_move = along_slopes(last, torch.from_numpy(plan.joins)) - unmoved[plan.joins]  # (variants,)
    of_node = torch.empty_like(inputs)  # the sentence that each node belongs to
    of_node[nodes] = torch.from_numpy(np.repeat(plan.sentences, np.diff(plan.path_offsets)))
    values = row_dots(h, torch.arange(len(h)), expansion.g, of_node)  # (nodes,)
    return _pooled_gains(plan, offsets, scores.double().numpy(), values.double().numpy(), tail_move)


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
