"""What the paper's networks are made of: word vectors, a table from word id to x, frozen (the paper) or tuned with the
rest, and attention.

Attention over ragged segments: one softmax per segment, each with its own maximum. The same class serves words in
phrases, phrases in sentences and sentences in documents.

    u_t = tanh(W h_t + b)      weights = softmax of u_t . context within the segment      pooled = sum of weights_t h_t

Below it, what the E-step pools: paths through a forest of states (`attend_paths`), paths whose nodes are [h; x], a
state beside the input that it read (`attend_path_pairs`), and documents as lists of pairs of states (`pair_attention`).
There most states are shared, so what is linear in a state is computed once for it.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from emhrnn.corpus.batch import Batch
from emhrnn.layers.cells import tanh_
from emhrnn.layers.dropout import dropout
from emhrnn.layers.linear import linear
from emhrnn.layers.native.library import Kernels, check_index, check_offsets
from emhrnn.layers.native.torch_kernels import check_columns, kernels_for
from emhrnn.layers.recurrent import LearnedRows
from emhrnn.models.model import DocumentModel
from emhrnn.paper.models.rows import NetworkConfig
from emhrnn.shapes import Float, Int64

Table = Float[Tensor, "vocabulary size"]  # of word vectors

UNKNOWN = 0  # the id of every word outside the vocabulary


class WordInputs(nn.Module):
    """Its output has a row for each word of a batch; explanations by gradients are gradients by these rows."""

    def forward(self, x: Float[Tensor, "words size"]) -> Float[Tensor, "words size"]:
        return x


class WordEmbedding(WordInputs):
    """x_t = table[word_t]. When the table is frozen the vector of unknown words is still learned: it has no
    pretrained value, and the paper maps every word outside GloVe to it."""

    def __init__(self, table: Table, *, tuned: bool) -> None:
        super().__init__()
        self.tuned = tuned
        if tuned:
            self.table = nn.Parameter(table.clone())
        else:
            self.register_buffer("table", table)
            self.unknown = nn.Parameter(table[UNKNOWN].clone())

    @property
    def size(self) -> int:
        return self.table.shape[1]

    def vectors(self) -> Table:
        """The whole table as the model sees it."""
        if self.tuned:
            return self.table
        return torch.cat([self.unknown[None], self.table[1:]])

    def forward(self, words: Int64[Tensor, " words"]) -> Float[Tensor, "words size"]:
        # A sparse gradient: a batch holds few of the words, and an optimiser should pay for those alone.
        x = F.embedding(words, self.table, sparse=self.tuned)
        if not self.tuned:
            x = torch.where((words == UNKNOWN)[:, None], self.unknown, x)
        return x

    def frozen(self, words: Int64[Tensor, " words"]) -> tuple[Float[Tensor, "words size"], LearnedRows]:
        """The same for a frozen table, with the gradient confined to the unknown words: a recurrent layer that is
        given both does not compute gradients for all of x."""
        x = F.embedding(words, self.table)
        rows = torch.nonzero(words == UNKNOWN).squeeze(1)
        x[rows] = self.unknown.detach()
        return x, LearnedRows(rows, self.unknown.expand(len(rows), -1))


class WordNetwork(DocumentModel):
    """A network on word vectors, with dropout where a generator is given."""

    def __init__(self, config: NetworkConfig, table: Table) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.embedding = WordEmbedding(table, tuned=config.tune_embedding)

    def dropped(self, h: Float[Tensor, "n H"], generator: torch.Generator | None) -> Float[Tensor, "n H"]:
        return dropout(h, self.dropout, generator)

    def inputs(self, batch: Batch, generator: torch.Generator | None) -> Float[Tensor, "words size"]:
        """x of each word."""
        return self.dropped(self.embedding(torch.from_numpy(batch.words)), generator)


CHUNK = 8192  # pairs at a time: the sums stay in the cache


class AttentionPool(nn.Module):
    """Scores rows and pools each segment of them."""

    def __init__(self, input_size: int, attention_size: int, *, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(input_size)
        self.weight = nn.Parameter(torch.empty(attention_size, input_size).uniform_(-bound, bound, generator=generator))
        self.bias = nn.Parameter(torch.zeros(attention_size))
        self.context = nn.Parameter(
            torch.empty(attention_size).normal_(0, 1 / math.sqrt(attention_size), generator=generator)
        )

    def scores(self, h: Float[Tensor, "n H"]) -> Float[Tensor, " n"]:
        """context . tanh(weight h + bias)"""
        if kernels := kernels_for(h, self.weight):
            tensors = [tensor.contiguous() for tensor in (h, self.weight, self.bias, self.context)]
            keep = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
            scores: Tensor = _NativeScores.apply(kernels, keep, *tensors)  # type: ignore[no-untyped-call]
            return scores
        return torch.tanh(nn.functional.linear(h, self.weight, self.bias)) @ self.context

    def forward(
        self, h: Float[Tensor, "n H"], offsets: Int64[Tensor, " m_plus_1"]
    ) -> tuple[Float[Tensor, "m H"], Float[Tensor, " n"]]:
        return attend(h, self.scores(h), offsets)


def attend(
    h: Float[Tensor, "n H"], scores: Float[Tensor, " n"], offsets: Int64[Tensor, " m_plus_1"]
) -> tuple[Float[Tensor, "m H"], Float[Tensor, " n"]]:
    """Pooled rows and attention weights of the segments offsets[i] : offsets[i + 1]; an empty segment pools to zero."""
    if kernels := kernels_for(h, scores):
        tensors = (tensor.contiguous() for tensor in (h, scores, offsets))
        pooled, weights = _NativeAttend.apply(kernels, *tensors)  # type: ignore[no-untyped-call]
    else:
        weights = segment_softmax(scores, offsets, segments(offsets))
        pooled = weighted_sums(h, weights, offsets, torch.arange(len(h)))
    return pooled, weights


def mean(h: Float[Tensor, "n H"], offsets: Int64[Tensor, " m_plus_1"]) -> Float[Tensor, "m H"]:
    """The mean of each segment: attention with equal scores."""
    return attend(h, h.new_zeros(len(h)), offsets)[0]


def segments(offsets: Int64[Tensor, " m_plus_1"]) -> Int64[Tensor, " n"]:
    """The segment of each row."""
    return torch.repeat_interleave(offsets.diff())


def segment_softmax(
    scores: Float[Tensor, " n"], offsets: Int64[Tensor, " m_plus_1"], segment: Int64[Tensor, " n"]
) -> Float[Tensor, " n"]:
    """Softmax within each segment, less the segment's own maximum: no segment underflows because of another."""
    highest = torch.segment_reduce(scores.detach(), "max", offsets=offsets, axis=0)
    weights = (scores - highest.index_select(0, segment)).exp()
    totals = torch.zeros_like(highest).index_add(0, segment, weights)
    return weights / totals.index_select(0, segment)


def weighted_sums(
    h: Float[Tensor, "n H"],
    weights: Float[Tensor, " k"],
    offsets: Int64[Tensor, " m_plus_1"],
    index: Int64[Tensor, " k"],
) -> Float[Tensor, "m H"]:
    """Row i is the sum of weights_t h[index_t] over t in offsets[i] : offsets[i + 1]."""
    # embedding_bag reads the rows where they are: two to three times faster than gather and index_add.
    return nn.functional.embedding_bag(
        index, h, offsets, mode="sum", per_sample_weights=weights, include_last_offset=True
    )


class _NativeScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, kernels: Kernels, keep: bool, h: Tensor, weight: Tensor, bias: Tensor, context: Tensor
    ) -> Tensor:
        check_columns(h, weight)
        (n, H), A = h.shape, len(context)
        scores, u = h.new_empty(n), h.new_empty(n, A) if keep else None  # u is the tanh
        kernels.call("attention_scores", n, H, A, h, weight, bias, context, u, scores, torch.get_num_threads())
        if keep:
            ctx.kernels = kernels
            ctx.save_for_backward(h, u, weight, context)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        h, u, weight, context = ctx.saved_tensors
        (n, H), A, d_scores = h.shape, len(context), d_scores.contiguous()
        d_weights = h.new_empty(A, ctx.kernels.padded_columns(H + 1)) if any(ctx.needs_input_grad[3:]) else None
        dh = torch.empty_like(h)
        ctx.kernels.call(
            "attention_scores_backward", n, H, A, h, u, weight, context, d_scores, d_weights, dh,
            torch.get_num_threads(),
        )  # fmt: skip
        if d_weights is None:
            return None, None, dh, None, None, None
        return None, None, dh, d_weights[:, :H].contiguous(), d_weights[:, H].contiguous(), d_scores @ u


class _NativeAttend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, kernels: Kernels, h: Tensor, scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.empty_like(scores)
        pooled = _native_attend(kernels, h, scores, offsets, None, weights)
        ctx.kernels = kernels
        ctx.save_for_backward(h, weights, offsets)
        ctx.set_materialize_grads(False)
        return pooled, weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_pooled: Tensor | None, d_weights: Tensor | None) -> tuple[Tensor | None, ...]:
        h, weights, offsets = ctx.saved_tensors
        if d_pooled is None and d_weights is None:
            return None, None, None, None
        m, H = len(offsets) - 1, h.shape[1]
        d_pooled = h.new_zeros(m, H) if d_pooled is None else d_pooled.contiguous()
        d_weights = None if d_weights is None else d_weights.contiguous()
        dh, d_scores = torch.empty_like(h), torch.empty_like(weights)
        threads = torch.get_num_threads()
        ctx.kernels.call("attend_backward", m, offsets, H, h, weights, d_pooled, d_weights, dh, d_scores, threads)
        return None, dh, d_scores, None


def _native_attend(
    kernels: Kernels,
    h: Float[Tensor, "n H"],
    scores: Float[Tensor, " n"],
    offsets: Int64[Tensor, " m_plus_1"],
    rows: Int64[Tensor, " k"] | None,
    weights: Float[Tensor, " k"] | None = None,
) -> Float[Tensor, "m H"]:
    """Pooled rows; `weights` are written, if they are given."""
    check_offsets(offsets, len(h) if rows is None else len(rows))
    if rows is not None:
        check_index(rows, len(h))
    if len(scores) != len(h):
        raise IndexError(f"{len(scores)} scores for {len(h)} rows")
    m, H = len(offsets) - 1, h.shape[1]
    pooled = h.new_empty(m, H)
    kernels.call("attend", m, offsets, rows, H, h, scores, weights, pooled, torch.get_num_threads())
    return pooled


# ------------------------------------------------------------------ of shared states, for the E-step


def attend_paths(
    h: Float[Tensor, "n H"],
    scores: Float[Tensor, " n"],
    offsets: Int64[Tensor, " m_plus_1"],
    index: Int64[Tensor, " k"],
) -> Float[Tensor, "m H"]:
    """Attention over the rows index[offsets[i] : offsets[i + 1]] of h, for each i."""
    if torch.is_grad_enabled() and (h.requires_grad or scores.requires_grad):
        return attend(h.index_select(0, index), scores.index_select(0, index), offsets)[0]
    if kernels := kernels_for(h, scores):
        return _native_attend(kernels, *(tensor.contiguous() for tensor in (h, scores, offsets, index)))
    weights = segment_softmax(scores.index_select(0, index), offsets, segments(offsets))
    return weighted_sums(h, weights, offsets, index)


def attend_path_pairs(
    attention: AttentionPool,
    h: Float[Tensor, "n H"],
    x: Float[Tensor, "m D"],
    inputs: Int64[Tensor, " n"],
    offsets: Int64[Tensor, " k_plus_1"],
    index: Int64[Tensor, " entries"],
) -> Float[Tensor, "k H_plus_D"]:
    """Pools the rows [h[i]; x[inputs[i]]] of i in index[offsets[j] : offsets[j + 1]], for each j. Without gradients
    no row [h; x] is ever put together."""
    if torch.is_grad_enabled() and (h.requires_grad or x.requires_grad or attention.weight.requires_grad):
        node = torch.cat([h, x.index_select(0, inputs)], dim=1)
        return attend_paths(node, attention.scores(node), offsets, index)
    H = h.shape[1]
    u = linear(h, attention.weight[:, :H], attention.bias)  # (n, A)
    u += linear(x, attention.weight[:, H:]).index_select(0, inputs)
    scores = tanh_(u) @ attention.context
    weights = segment_softmax(scores.index_select(0, index), offsets, segments(offsets))
    of_x = weighted_sums(x, weights, offsets, inputs.index_select(0, index))
    return torch.cat([weighted_sums(h, weights, offsets, index), of_x], dim=1)


def pair_attention(
    left: Float[Tensor, "F A_plus_C"],
    right: Float[Tensor, "B A_plus_C"],
    context: Float[Tensor, " A"],
    offsets: Int64[Tensor, " v_plus_1"],
    forward_nodes: Int64[Tensor, " k"],
    backward_nodes: Int64[Tensor, " k"],
) -> Float[Tensor, "v C"]:
    """Sentence attention of the E-step. A document variant is a list of (forward state, backward state) pairs:

        score = context . tanh(left[f, :A] + right[b, :A])
        logits of a variant = sum over its pairs of softmax(score) * (left[f, A:] + right[b, A:])

    Pair t of variant i, with t in offsets[i] : offsets[i + 1], is (forward_nodes[t], backward_nodes[t]),
    rows of `left` and `right`."""
    A = len(context)
    differentiate = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (left, right, context))
    kernels = kernels_for(left, right, context)
    if kernels and not differentiate:
        check_offsets(offsets, len(forward_nodes))
        check_index(forward_nodes, len(left))
        check_index(backward_nodes, len(right))
        if len(backward_nodes) != len(forward_nodes):
            raise IndexError(f"{len(forward_nodes)} nodes against {len(backward_nodes)}")
        check_columns(left, right)
        variants, C = len(offsets) - 1, left.shape[1] - A
        logits = left.new_empty(variants, C)
        nodes = (tensor.contiguous() for tensor in (offsets, forward_nodes, backward_nodes))
        floats = (tensor.contiguous() for tensor in (left, right, context))
        kernels.call("pair_attention", variants, *nodes, A, C, *floats, logits, torch.get_num_threads())
        return logits
    scores = []
    for f, b in zip(torch.split(forward_nodes, CHUNK), torch.split(backward_nodes, CHUNK), strict=True):
        if differentiate:
            scores.append((left[:, :A].index_select(0, f) + right[:, :A].index_select(0, b)).tanh() @ context)
        else:
            scores.append(tanh_(left[:, :A].index_select(0, f).add_(right[:, :A].index_select(0, b))) @ context)
    votes = left[:, A:].index_select(0, forward_nodes) + right[:, A:].index_select(0, backward_nodes)
    return attend(votes, torch.cat(scores), offsets)[0]
