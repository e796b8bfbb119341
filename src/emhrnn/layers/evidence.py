r"""What each candidate phrase (layers/phrases.py) says for each class, in training: with gradients. phrase_scores.py is
the same for a trained model.

Seen phrases, by counts and by a table, of a phrase with row i and k words in a document that holds it n times:

    weight * (scale[k, bucket] * r'_y + table[i, y])      weight = n^-presence, times dropout
    r' = r (1 + mixing)                                   counts of one class also speak for related ones

    r_y = log((c_y + m p_y) / p_y) - mean over classes    c_y: documents of class y that have the phrase
    r_y = log((c_y + m p_y) / (rest_y + m (1 - p_y))) - logit p_y       with several labels a document: against the rest

In training a document's own contribution is taken off the counts (`own`) and off p_y: a phrase must not vote for a
label because this very document taught it so, nor against it because without this document its class has the phrase
once less. `bucket` is the power of two below the number of documents with the phrase.

All phrases, by a small network on the vectors of their words, so that unseen ones speak, too:

    h(t, k) = tanh(b_k + sum over j < k of P_j x_(t-j))       U^T h
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from emhrnn.layers.native.library import check_shape
from emhrnn.layers.native.torch_kernels import TorchKernels, check_index, check_offsets, kernels_for
from emhrnn.layers.phrases import NONE
from emhrnn.layers.semi_markov import backward_pass, forward_pass
from emhrnn.shapes import Float, Int32, Int64

Scores = Float[Tensor, "words K classes"]
Candidates = Int64[Tensor, "words K"]


@dataclass(frozen=True, eq=False)
class Counts:
    """How many documents have each seen phrase; those of weight 2 count twice. p_y may be one for all documents, or of
    all others for each document of a training batch."""

    by_class: Float[Tensor, "rows classes"]
    documents: Float[Tensor, " rows"]
    prior: Float[Tensor, "*batch classes"]  # m p_y: pseudo-counts
    shift: Float[Tensor, "*batch classes"]  # -log p_y, or -logit p_y
    several: bool  # labels of a document

    @property
    def complement_prior(self) -> Float[Tensor, "*batch classes"]:
        """m (1 - p_y), with several labels: then p_y do not sum to 1, and m is not the sum of the prior."""
        return self.prior * self.shift.exp()

    def ratios(
        self, rows: Int64[Tensor, " n"], document: Int64[Tensor, " n"] | None = None, own: "Own | None" = None
    ) -> tuple[Float[Tensor, "n classes"], Float[Tensor, " n"]]:
        """r of these rows, and the documents that have them; with `own`, both without the document of each."""
        count, documents = self.by_class[rows], self.documents[rows]
        if own is not None:
            count, documents = count - own.labels[document], documents - own.weights[document]
        of = ... if self.prior.ndim == 1 else document
        r = torch.log(count.clamp_min(0) + self.prior[of]) + self.shift[of]  # (n, classes)
        if self.several:
            rest = documents[:, None] - count
            return r - torch.log(rest.clamp_min(0) + self.complement_prior[of]), documents
        return r - r.mean(dim=1, keepdim=True), documents


@dataclass(frozen=True, eq=False)
class Own:
    """What each document of a training batch has added to the counts of the phrases in it."""

    labels: Float[Tensor, "documents classes"]  # its weight, at its classes
    weights: Float[Tensor, " documents"]


def buckets_of(documents: Float[Tensor, "..."], buckets: int) -> Int64[Tensor, "..."]:
    """floor(log2) of the number of documents, from 0 to buckets - 1."""
    exponent = torch.frexp(documents.clamp_min(1)).exponent - 1
    return exponent.clamp(max=buckets - 1).long()


def seen_evidence(
    table: Float[Tensor, "rows classes"],
    scale: Float[Tensor, "K buckets"],
    counts: Counts,
    *,
    rows: Candidates,
    weights: Float[Tensor, "words K"],
    word_offsets: Int64[Tensor, " documents_plus_1"],
    own: Own | None,
    mixing: Float[Tensor, "classes classes"] | None = None,
    least: float = 0.0,
) -> Scores:
    """The first formula above; 0 for candidates without a row. The gradient of the table is sparse, and of rows with
    `least` documents or more alone; weights and counts have none. Raises an IndexError for offsets, row numbers and
    shapes that do not match."""
    check_offsets(word_offsets, len(rows))
    check_shape("weights", weights, rows.shape)
    check_index(rows, len(table), least=NONE)
    check_shape("scale", scale, (rows.shape[1], max(scale.shape[1], 1)))
    _check_counts(counts, own, table.shape, len(word_offsets) - 1)
    if mixing is not None:
        check_shape("mixing", mixing, (table.shape[1], table.shape[1]))
    others = [*(() if own is None else (own.labels, own.weights)), *(() if mixing is None else (mixing,))]
    if native := kernels_for(
        table, scale, weights, counts.by_class, counts.documents, counts.prior, counts.shift, *others
    ):
        learns = any(part is not None and part.requires_grad for part in (table, scale, mixing))
        result: Tensor = _Seen.apply(  # type: ignore[no-untyped-call]
            table, scale, mixing, native, counts, rows.contiguous(), weights.contiguous(), word_offsets.contiguous(),
            own, least, torch.is_grad_enabled() and learns,
        )  # fmt: skip
        return result
    K, B = scale.shape
    seen = (rows.reshape(-1) != NONE).nonzero().squeeze(1)  # (n), of all words * K
    found = rows.reshape(-1)[seen]
    ratios, documents = counts.ratios(found, torch.repeat_interleave(word_offsets.diff())[seen // K], own)
    factor = scale[seen % K, buckets_of(documents, B)]  # (n)
    if mixing is not None:
        ratios = ratios + ratios @ mixing
    learned = counts.documents[found] >= least
    free = torch.nn.functional.embedding(found, table, sparse=True)  # (n, classes)
    said = factor[:, None] * ratios + torch.where(learned[:, None], free, free.detach())
    said = weights.detach().reshape(-1)[seen, None] * said  # (n, classes)
    return said.new_zeros(rows.numel(), table.shape[1]).index_copy(0, seen, said).view(*rows.shape, table.shape[1])


def _check_counts(counts: Counts, own: Own | None, size: torch.Size, documents: int) -> None:
    rows, classes = size
    check_shape("counts by class", counts.by_class, (rows, classes))
    check_shape("counts of documents", counts.documents, (rows,))
    each = (documents, classes) if counts.prior.ndim == 2 else (classes,)
    check_shape("prior", counts.prior, each)
    check_shape("shift", counts.shift, each)
    if own is not None:
        check_shape("own labels", own.labels, (documents, classes))
        check_shape("own weights", own.weights, (documents,))


class _Seen(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        table: Tensor,
        scale: Tensor,
        mixing: Tensor | None,
        native: TorchKernels,
        counts: Counts,
        rows: Tensor,
        weights: Tensor,
        word_offsets: Tensor,
        own: Own | None,
        least: float,
        keep: bool,
    ) -> Tensor:
        (n, K), C, B = rows.shape, table.shape[1], scale.shape[1]
        scores, ratios = table.new_empty(n, K, C), table.new_empty(n, K, C) if keep else None
        buckets: Int32[Tensor, "words K"] | None = torch.empty(n, K, dtype=torch.int32) if keep else None
        labels, own_weights = (None, None) if own is None else (own.labels.contiguous(), own.weights.contiguous())
        prior, shift, each = counts.prior.contiguous(), counts.shift.contiguous(), int(counts.prior.ndim == 2)
        complement = counts.complement_prior.contiguous() if counts.several else None
        learned = torch.empty_like(rows) if least and keep else None
        scale, mixing = scale.detach().contiguous(), None if mixing is None else mixing.detach().contiguous()
        native.call(
            "seen_forward", len(word_offsets) - 1, word_offsets, K, C, B, rows, weights, counts.by_class,
            counts.documents, table.detach(), prior, shift, complement, each, labels, own_weights,
            scale, mixing, torch.tensor([least], dtype=torch.float32), ratios, buckets, learned, scores,
            torch.get_num_threads(),
        )  # fmt: skip
        if keep:
            ctx.native, ctx.size = native, table.shape
            ctx.save_for_backward(rows if learned is None else learned, weights, ratios, buckets, scale, mixing)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights, ratios, buckets, scale, mixing = ctx.saved_tensors
        (K, B), C = scale.shape, ctx.size[1]
        d_scores, d_table, d_scale, d_mixing = d_scores.contiguous(), None, None, None
        if ctx.needs_input_grad[0]:
            d_table = sum_rows(ctx.native, rows, weights, d_scores, ctx.size)
        kept = rows.numel(), K, C, B, weights, ratios, buckets
        if mixing is not None:
            d_scale, d_mixing = torch.empty_like(scale), torch.empty_like(mixing)
            ctx.native.call("mixed_backward", *kept, scale, mixing, d_scores, d_scale, d_mixing)
        elif ctx.needs_input_grad[1]:
            d_scale = torch.empty_like(scale)
            ctx.native.call("seen_backward", *kept, d_scores, d_scale)
        return d_table, d_scale, d_mixing, *[None] * 8


def sum_rows(native: TorchKernels, rows: Candidates, weights: Tensor, values: Scores, size: torch.Size) -> Tensor:
    """A sparse matrix: at each row that occurs, sorted, the sum of weight times values."""
    distinct = torch.empty(rows.numel(), dtype=torch.int64)
    sums = values.new_empty(rows.numel(), size[1])
    count = torch.empty(1, dtype=torch.int64)
    native.call("sum_rows", rows.numel(), size[1], rows, weights, values, distinct, sums, count)
    n = int(count)
    return torch.sparse_coo_tensor(distinct[None, :n], sums[:n], size, is_coalesced=True, check_invariants=False)


def add_cohesion(evidence: Scores, cohesion: Float[Tensor, "words K"]) -> Scores:
    """evidence + cohesion, the same for every class, in the memory of evidence. Raises an IndexError for shapes that do
    not match."""
    check_shape("cohesion", cohesion, evidence.shape[:2])
    if native := kernels_for(evidence, cohesion):
        result: Tensor = _AddCohesion.apply(  # type: ignore[no-untyped-call]
            evidence, cohesion.contiguous(), native
        )
        return result
    return evidence.add_(cohesion[:, :, None])


class _AddCohesion(torch.autograd.Function):
    """As torch would do it, which takes ten times as long for rows of two classes."""

    @staticmethod
    def forward(ctx: Any, evidence: Tensor, cohesion: Tensor, native: TorchKernels) -> Tensor:
        ctx.native = native
        ctx.mark_dirty(evidence)
        native.call("add_to_rows", cohesion.numel(), evidence.shape[2], cohesion, evidence)
        return evidence

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sums: Tensor) -> tuple[Tensor | None, ...]:
        d_cohesion = None
        if ctx.needs_input_grad[1]:
            d_cohesion = d_sums.new_empty(d_sums.shape[:2])
            ctx.native.call("sums_of_rows", d_cohesion.numel(), d_sums.shape[2], d_sums.contiguous(), d_cohesion)
        return d_sums, d_cohesion, None


def encoded(
    projection: Float[Tensor, "distinct K hidden"],
    bias: Float[Tensor, "K hidden"],
    output: Float[Tensor, "hidden classes"],
    places: Int64[Tensor, " words"],
    sentence_offsets: Int64[Tensor, " sentences_plus_1"],
) -> Scores:
    """The second formula above, with P_j x of each distinct word given; 0 for candidates that would begin before their
    sentence. `places` are the rows of the words in `projection`. Raises an IndexError for offsets, places and shapes
    that do not match."""
    check_offsets(sentence_offsets, len(places))
    check_index(places, len(projection))
    check_shape("bias", bias, projection.shape[1:])
    check_shape("output", output, (projection.shape[2], output.shape[1]))
    if native := kernels_for(projection, bias, output):
        weights = projection.contiguous(), bias.contiguous(), output.contiguous()
        keep = torch.is_grad_enabled() and any(weight.requires_grad for weight in weights)
        result: Tensor = _Encoded.apply(  # type: ignore[no-untyped-call]
            *weights, native, places.contiguous(), sentence_offsets.contiguous(), keep
        )
        return result
    lengths = sentence_offsets.diff()
    position = torch.arange(len(places)) - torch.repeat_interleave(sentence_offsets[:-1], lengths)  # in its sentence
    states, total = [], torch.zeros(())
    for k in range(projection.shape[1]):
        total = total + projection[places.roll(k), k]  # (words, hidden)
        states.append(torch.tanh(total + bias[k]))
    inside = position[:, None] >= torch.arange(len(states))  # (words, K)
    return torch.stack(states, dim=1) @ output * inside[:, :, None]


class _Encoded(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projection: Tensor,
        bias: Tensor,
        output: Tensor,
        native: TorchKernels,
        places: Tensor,
        offsets: Tensor,
        keep: bool,
    ) -> Tensor:
        (_, K, H), C, n = projection.shape, output.shape[1], len(places)
        h = projection.new_empty(n, K, H) if keep else None
        scores = projection.new_zeros(n, K, C)
        native.call(
            "encoder_forward", len(offsets) - 1, offsets, K, H, C, places, projection, bias, output, h, scores,
            torch.get_num_threads(),
        )  # fmt: skip
        if keep:
            ctx.native, ctx.distinct = native, len(projection)
            ctx.save_for_backward(h, output, places, offsets)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        h, output, places, offsets = ctx.saved_tensors
        (_, K, H), C = h.shape, output.shape[1]
        d_projection, d_bias, d_output = h.new_empty(ctx.distinct, K, H), h.new_empty(K, H), h.new_empty(C, H)
        ctx.native.call(
            "encoder_backward", len(offsets) - 1, offsets, K, H, C, places, ctx.distinct, output.T.contiguous(), h,
            d_scores.contiguous(), d_projection, d_bias, d_output, torch.get_num_threads(),
        )  # fmt: skip
        return d_projection, d_bias, d_output.T, None, None, None, None


def log_partition(
    scores: Scores, sentence_offsets: Int64[np.ndarray, " sentences_plus_1"]
) -> Float[Tensor, "sentences classes"]:
    """alpha at the last word of every sentence (semi_markov.py). Its gradient in scores is the posterior of every
    phrase. -inf, with gradient 0, where no segmentation is possible."""
    keep = torch.is_grad_enabled() and scores.requires_grad
    result: Tensor = _LogPartition.apply(scores, sentence_offsets, keep)  # type: ignore[no-untyped-call]
    return result


class _LogPartition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, offsets: Any, keep: bool) -> Tensor:
        log_z, q = forward_pass(scores.detach().numpy(), offsets, keep=keep)
        ctx.q, ctx.offsets = q, offsets
        return torch.from_numpy(log_z)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_log_z: Tensor) -> tuple[Tensor, None, None]:
        return torch.from_numpy(backward_pass(ctx.q, ctx.offsets, d_log_z.numpy())), None, None
