"""log p(y | Z, w) of every configuration of every block, at once.

The word layer does not depend on Z and is given. The rest follows the integer plan: distinct phrases, trie of phrase
states, distinct sentence vectors, chains of the sentence BiLSTM, sentence attention of every distinct document; a
handful of large matrix products, with no Python loop over documents, blocks or configurations. Differentiable.

The recurrent layers run over trees of shared prefixes, so that sequences which begin alike are computed once: node i
reads input inputs[i] in the state of its parent.

    a -> b -> c            nodes in level order: a | b d | c e
      -> d -> e            parents:             -1 | 0 0 | 1 2       level_sizes 1 2 2
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from emhrnn.corpus.batch import Batch, offsets_of, ranges
from emhrnn.errors import DataError
from emhrnn.layers.cells import Cell, States
from emhrnn.layers.linear import linear
from emhrnn.layers.native.library import CELLS, check_index
from emhrnn.layers.native.torch_kernels import check_gates, kernels_for
from emhrnn.layers.recurrent import Recurrent
from emhrnn.models.model import log_likelihood
from emhrnn.paper.em.blocks import Blocks
from emhrnn.paper.em.plan import BlockChunk, DocumentPlan, Forest, SentencePlan, chunks, make_plan
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.paper.models.layers import attend_path_pairs, attend_paths, pair_attention
from emhrnn.shapes import Bool, Float, Int64

CHUNK = 2048  # nodes of a forest per matrix product: the gates of a chunk stay in the cache
BUDGET = 24 << 20  # bytes; some ten documents of 150 words and 320 configurations, which stay in the cache


def configuration_likelihood(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
    *,
    budget: int = BUDGET,
) -> Float[Tensor, "blocks configurations"]:
    """log p(y | z_B, zhat_-B, w): z holds the boundaries outside each block. -inf where a block has no such
    configuration."""
    labels = batch_labels(batch)
    sentence, phrase = bytes_per_state(model), bytes_per_phrase(model)
    cut = list(chunks(batch, blocks, budget=budget, sentence_bytes=sentence, phrase_bytes=phrase))
    if not cut:
        return states.h1.new_zeros(0, 1 << blocks.length)
    evaluate: Callable[..., Tensor] = _chunk_likelihood
    if torch.is_grad_enabled() and len(cut) > 1:  # keep no states: the backward pass makes them again, chunk by chunk
        evaluate = partial(checkpoint, _chunk_likelihood, use_reentrant=False, preserve_rng_state=False)
    return torch.cat(
        [
            evaluate(
                model,
                chunk,
                states.part(chunk.word_range),
                z[chunk.word_range],
                labels[chunk.document_range],
            )
            for chunk in cut
        ]
    )


def _chunk_likelihood(
    model: EMHRNN,
    chunk: BlockChunk,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    labels: Tensor,
) -> Float[Tensor, "blocks configurations"]:
    plan = make_plan(chunk.batch, z, chunk.blocks)
    s = sentence_vectors(model, states, plan.sentences)
    logits = document_logits(model, s, plan.documents)  # (variants, classes)
    document = torch.from_numpy(plan.documents.documents)  # of each variant
    return _spread(log_likelihood(logits, labels[document]), plan.documents)


def sentence_vectors(
    model: EMHRNN, states: WordStates, plan: SentencePlan
) -> Float[Tensor, "variants phrase_features"]:
    """s of every distinct sentence."""
    lengths = plan.segment_end - plan.segment_begin
    segments = torch.from_numpy(offsets_of(lengths)), torch.from_numpy(ranges(plan.segment_begin, lengths))
    q = attend_paths(states.h1, states.scores, *segments)  # (segments, word_features)
    h2 = _forest(model.phrase_layer, q, plan.phrases)  # (nodes, phrase_size)
    path = torch.from_numpy(plan.path_offsets), torch.from_numpy(plan.path_nodes)
    if model.skip:
        return attend_path_pairs(model.phrase_attention, h2, q, torch.from_numpy(plan.phrases.inputs), *path)
    return attend_paths(h2, model.phrase_attention.scores(h2), *path)


def document_logits(
    model: EMHRNN, s: Float[Tensor, "sentence_variants phrase_features"], plan: DocumentPlan
) -> Float[Tensor, "variants classes"]:
    """Logits of every distinct document.

    Attention and output layer are linear in h3 = [forward; backward] before tanh and softmax, so both are applied to
    each state once: a document then only adds up the pairs of states that it has."""
    forward = _forest(model.sentence_forward, s, plan.forward)  # (forward nodes, sentence_size)
    backward = _forest(model.sentence_backward, s, plan.backward)
    weight = torch.cat([model.sentence_attention.weight, model.output.weight])  # (attention + classes, 2 sentence_size)
    bias = torch.cat([model.sentence_attention.bias, model.output.bias])
    size = model.sentence_forward.hidden_size
    left, right = linear(forward, weight[:, :size], bias), linear(backward, weight[:, size:])
    return pair_attention(
        left,
        right,
        model.sentence_attention.context,
        torch.from_numpy(plan.offsets),
        torch.from_numpy(plan.forward_nodes),
        torch.from_numpy(plan.backward_nodes),
    )


def batch_labels(batch: Batch) -> Tensor:
    """y as a tensor; the E-step cannot do without."""
    if batch.labels is None:
        raise DataError("the E-step weighs segmentations by the label, and these documents have none")
    return torch.from_numpy(batch.labels)


def _forest(layer: Recurrent, x: Float[Tensor, "m features"], forest: Forest) -> Float[Tensor, "nodes hidden"]:
    return forest_h(layer, x, torch.from_numpy(forest.inputs), torch.from_numpy(forest.parents), forest.level_sizes)


def _spread(log_p: Float[Tensor, " variants"], plan: DocumentPlan) -> Float[Tensor, "blocks configurations"]:
    """From distinct documents to configurations."""
    variant = torch.from_numpy(plan.configurations)
    return torch.where(variant >= 0, log_p[variant.clamp(min=0)], -torch.inf)


def bytes_per_phrase(model: EMHRNN) -> int:
    """A node of the phrase layer: h and c, its row of scores twice, and its indices."""
    return 8 * (model.phrase_layer.hidden_size + len(model.phrase_attention.context)) + 64


def bytes_per_state(model: EMHRNN) -> int:
    """A node of the sentence layer: h and c, its row of scores and votes, and its indices."""
    classes, features = model.output.weight.shape
    return 4 * (features + len(model.sentence_attention.context) + classes) + 64


# ------------------------------------------------------------------ recurrent layers over forests


def forest_h(
    layer: Recurrent,
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: Int64[np.ndarray, " levels"] | Sequence[int],
) -> Float[Tensor, "n H"]:
    """h of all nodes, which come level by level: roots first (parent -1), then their children, and so on."""
    projection = layer.project(x)
    keep = torch.is_grad_enabled() and (projection.requires_grad or layer.state_weight.requires_grad)
    nodes = inputs.contiguous(), parents.contiguous(), list(map(int, level_sizes))
    h: Tensor = _Forest.apply(layer.cell, projection, layer.state_weight, *nodes, keep)  # type: ignore[no-untyped-call]
    return h


class _Forest(torch.autograd.Function):
    """Projections of the distinct inputs (m, gates) -> h of the nodes (n, H)."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        projection: Tensor,
        state_weight: Tensor,
        inputs: Tensor,
        parents: Tensor,
        level_sizes: list[int],
        keep: bool,
    ) -> Tensor:
        gates, states = _run_forest(cell, projection, state_weight, inputs, parents, level_sizes, keep=keep)
        if keep:
            ctx.cell, ctx.level_sizes, ctx.distinct = cell, level_sizes, len(projection)
            ctx.save_for_backward(state_weight, inputs, parents, gates, *states)
        return states[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor | None, ...]:
        state_weight, inputs, parents, gates, *states = ctx.saved_tensors
        cell: Cell = ctx.cell
        weight = cell.to_gates(state_weight)
        d_states = (dh.clone(), *(torch.zeros_like(state) for state in states[1:]))  # children add to parents
        d_projection = gates.new_zeros(ctx.distinct, len(weight))
        d_weight = torch.zeros_like(weight)
        for rows, root in reversed(list(_chunks(ctx.level_sizes))):
            before = tuple(
                torch.zeros_like(state[rows]) if root else state.index_select(0, parents[rows]) for state in states
            )
            d_gates, passed = cell.slopes(gates[rows], tuple(state[rows] for state in states), before)
            d_now = tuple(d[rows].clone() for d in d_states)  # becomes that of the states before
            cell.backward_(d_gates, passed, d_now)
            d_projection.index_add_(0, inputs[rows], cell.of_input(d_gates))
            if not root:
                of_state = cell.of_state(d_gates)
                d_weight.addmm_(of_state.t(), before[0])
                d_now[0].addmm_(of_state, weight, beta=cell.h_passes)
                for d, d_before in zip(d_states, d_now, strict=True):
                    d.index_add_(0, parents[rows], d_before)
        return None, d_projection, cell.from_gates(d_weight), None, None, None, None


def _run_forest(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    state_weight: Float[Tensor, "gates H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: list[int],
    *,
    keep: bool,
) -> tuple[Float[Tensor, "n four_H"] | None, States]:
    """The activated gates if they are to be kept, and the states: h, and c of an LSTM."""
    n, H = len(inputs), state_weight.shape[1]
    states = tuple(projection.new_empty(n, H) for _ in range(cell.states))
    gates = projection.new_empty(n, 4 * H) if keep else None
    if kernels := kernels_for(projection, state_weight):
        sizes = _checked_levels(level_sizes, inputs, parents, len(projection))
        check_gates(projection, state_weight)
        h, c = (*states, None)[:2]
        kernels.call(
            "forest_forward", CELLS[cell.name], len(sizes), sizes, H, inputs, parents, projection,
            state_weight.contiguous(), gates, c, h, torch.get_num_threads(),
        )  # fmt: skip
    else:
        _plain_forest(cell, projection, state_weight, inputs, parents, level_sizes, gates, states)
    return gates, states


def _checked_levels(
    level_sizes: Sequence[int], inputs: Int64[Tensor, " n"], parents: Int64[Tensor, " n"], distinct: int
) -> Int64[Tensor, " levels"]:
    """Level sizes as a tensor, for a forest over `distinct` inputs."""
    n, sizes = len(inputs), torch.tensor(level_sizes, dtype=torch.int64)
    check_index(inputs, distinct)
    roots = int(sizes[0]) if len(sizes) else 0
    if int(sizes.sum()) != n or len(parents) != n:
        raise IndexError(f"{n} inputs, {len(parents)} parents and levels of {int(sizes.sum())} nodes")
    check_index(parents[roots:], n)
    level = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
    if bool((level[parents[roots:]] != level[roots:] - 1).any()):
        raise IndexError("a node's parent must be of the level before")
    return sizes


def _plain_forest(
    cell: Cell,
    projection: Float[Tensor, "m gates"],
    state_weight: Float[Tensor, "gates H"],
    inputs: Int64[Tensor, " n"],
    parents: Int64[Tensor, " n"],
    level_sizes: list[int],
    kept: Float[Tensor, "n four_H"] | None,
    states: States,
) -> None:
    """The same in torch: fills `kept`, if it is given, and the states."""
    transposed = cell.to_gates(state_weight).t().contiguous()
    for rows, root in _chunks(level_sizes):
        gates = cell.opened(projection.index_select(0, inputs[rows]))
        before = None
        if not root:
            before = tuple(state.index_select(0, parents[rows]) for state in states)
            cell.of_state(gates).addmm_(before[0], transposed)
        cell.activate_(gates, before, tuple(state[rows] for state in states))
        if kept is not None:
            kept[rows] = gates


def _chunks(level_sizes: list[int]) -> list[tuple[slice, bool]]:
    """Runs of rows within one level, and whether it is the level of the roots."""
    chunks = []
    start = 0
    for level, size in enumerate(level_sizes):
        end = start + size
        chunks += [(slice(s, min(s + CHUNK, end)), level == 0) for s in range(start, end, CHUNK)]
        start = end
    return chunks
