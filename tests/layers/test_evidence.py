"""What candidate phrases say: native kernels and torch twin against the formulas, one candidate after the other."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.layers.evidence import Counts, Own, add_cohesion, buckets_of, encoded, seen_evidence
from emhrnn.layers.native import kernels
from emhrnn.layers.phrases import NONE, PhraseIndex, first_in_document, phrase_keys
from tests.back_ends import check_threads_change_no_bit
from tests.layers.candidates import K_OF_TESTS, few_words, ragged
from tests.layers.shapes import generator_of, seeds
from tests.oracles import phrase_evidence as oracle

classes = st.sampled_from([1, 2, 3, 4, 5, 17, 20])  # shorter than a vector, and longer
hidden = st.sampled_from([1, 5, 16, 24, 32])
M = 3.0  # pseudo-counts


def tolerance(dtype: torch.dtype, single: float = 1e-5) -> dict[str, float]:
    close = single if dtype is torch.float32 else 1e-12
    return {"atol": close, "rtol": close}


# ------------------------------------------------------------------------------------------------------ seen phrases


@dataclass(frozen=True, eq=False)
class Problem:
    """Phrases of a batch that are counted in its documents, and what `seen_evidence` takes besides."""

    batch: Batch
    rows: Tensor
    weights: Tensor
    table: Tensor
    scale: Tensor
    mixing: Tensor | None
    counts: Counts
    shares: list[float]
    own: Own

    @property
    def word_offsets(self) -> Tensor:
        return torch.from_numpy(self.batch.word_offsets)

    @property
    def leaves(self) -> list[Tensor]:
        """What learns."""
        return [self.table, self.scale, *([] if self.mixing is None else [self.mixing])]

    def to(self, dtype: torch.dtype) -> "Problem":
        """The same, with table and scale that require a gradient."""
        c = self.counts
        return replace(
            self,
            weights=self.weights.to(dtype),
            table=self.table.detach().to(dtype).requires_grad_(),
            scale=self.scale.detach().to(dtype).requires_grad_(),
            mixing=None if self.mixing is None else self.mixing.detach().to(dtype).requires_grad_(),
            counts=Counts(*(part.to(dtype) for part in (c.by_class, c.documents, c.prior, c.shift)), c.several),
            own=Own(self.own.labels.to(dtype), self.own.weights.to(dtype)),
        )

    def scores(self, *, leave_out: bool, least: float = 0.0) -> Tensor:
        return seen_evidence(
            self.table, self.scale, self.counts, rows=self.rows, weights=self.weights, word_offsets=self.word_offsets,
            own=self.own if leave_out else None, mixing=self.mixing, least=least,
        )  # fmt: skip

    def expected(self, *, leave_out: bool) -> Tensor:
        arrays = (
            part.detach().double().numpy()
            for part in (self.table, self.scale, self.counts.by_class, self.counts.documents)
        )
        own = {"own_labels": self.own.labels.numpy(), "own_weights": self.own.weights.numpy()} if leave_out else {}
        scores = oracle.seen_scores(
            self.rows.numpy(), self.weights.numpy(), self.batch.word_offsets.tolist(), *arrays, self.shares, M,
            several=self.counts.several, mixing=None if self.mixing is None else self.mixing.detach().double().numpy(),
            **own,
        )  # fmt: skip
        return torch.from_numpy(scores)


def counted(batch: Batch, rows: Tensor, size: int, own: Own) -> tuple[Tensor, Tensor]:
    """Weights of the documents of each class that have each phrase, and of all of them."""
    by_class, documents = own.labels.new_zeros(size, own.labels.shape[1]), own.weights.new_zeros(size)
    once = torch.from_numpy(first_in_document(batch, rows.numpy()))
    for d, begin in enumerate(batch.word_offsets[:-1]):
        for t in range(begin, batch.word_offsets[d + 1]):
            for row in rows[t][once[t]].tolist():
                by_class[row] += own.labels[d]
                documents[row] += own.weights[d]
    return by_class, documents


def problem(lengths: list[list[int]], K: int, C: int, seed: int, *, several: bool, buckets: int = 3) -> Problem:
    """In double precision; some candidates have weight 0, documents count twice or half, classes may mix."""
    batch, rng, generator = few_words(lengths, seed), np.random.default_rng(seed), generator_of(seed)
    keys = phrase_keys(batch, K)
    index = PhraseIndex(np.unique(keys[keys != NONE])[: 1 + 3 * batch.n_words // 2])
    rows, n = torch.from_numpy(index.rows(batch, K)), batch.n_documents
    labels = rng.random((n, C)) < 0.4 if several else np.eye(C, dtype=bool)[rng.integers(0, C, n)]
    weights = torch.from_numpy(rng.choice([0.5, 1.0, 2.0], n))
    own = Own(torch.from_numpy(labels) * weights[:, None], weights)
    shares = rng.uniform(0.05, 0.95, C) if several else rng.dirichlet(np.full(C, 5.0))
    p = torch.from_numpy(shares)
    counts = Counts(
        *counted(batch, rows, len(index.keys), own), M * p, -torch.logit(p) if several else -torch.log(p), several
    )
    return Problem(
        batch, rows, torch.from_numpy(rng.choice([0.0, 0.5, 1.0, 1.25], tuple(rows.shape))),
        torch.randn(len(index.keys), C, generator=generator, dtype=torch.float64),
        torch.randn(K, buckets, generator=generator, dtype=torch.float64),
        0.5 * torch.randn(C, C, generator=generator, dtype=torch.float64) if seed % 2 else None,
        counts, shares.tolist(), own,
    )  # fmt: skip


def gradients(result: Tensor, leaves: list[Tensor], seed: int) -> list[Tensor]:
    """Of a weighted sum of the result."""
    direction = torch.randn(result.shape, generator=generator_of(seed), dtype=torch.float64).to(result.dtype)
    return list(torch.autograd.grad(result, leaves, direction))


@given(ragged, K_OF_TESTS, classes, seeds, st.booleans(), st.booleans())
@example([[6, 3], [9], [12, 1]], 4, 20, 0, False, True)
@example([[6, 3], [9], [12, 1]], 3, 17, 1, True, True)
@example([[1]] * 40, 2, 3, 2, False, True)  # more than one task
@settings(max_examples=40)
def test_seen_evidence_equals_the_formula(dtype, lengths, K, C, seed, several, leave_out):
    exact = problem(lengths, K, C, seed, several=several)
    ours = exact.to(dtype)
    result = ours.scores(leave_out=leave_out)
    torch.testing.assert_close(result.double(), exact.expected(leave_out=leave_out), **tolerance(dtype))
    with torch.no_grad():
        assert torch.equal(ours.scores(leave_out=leave_out), result)


@given(ragged, K_OF_TESTS, classes, seeds, st.booleans(), st.booleans())
@example([[6, 3], [9], [12, 1]], 4, 20, 0, False, True)
@example([[6, 3], [9], [12, 1]], 3, 17, 1, True, True)
@settings(max_examples=30)
def test_gradients_of_seen_evidence_equal_those_in_double_precision(dtype, lengths, K, C, seed, several, leave_out):
    exact = problem(lengths, K, C, seed, several=several)
    results = []
    for one in (exact.to(dtype), exact.to(torch.float64)):
        table, *others = gradients(one.scores(leave_out=leave_out), one.leaves, seed)
        assert table.is_sparse
        results.append([table.to_dense().double(), *(other.double() for other in others)])
    torch.testing.assert_close(*results, **tolerance(dtype, 1e-4))


@given(ragged, K_OF_TESTS, st.sampled_from([1, 2, 3]), seeds, st.booleans())
@settings(max_examples=10)
def test_gradients_of_seen_evidence_equal_finite_differences(lengths, K, C, seed, several):
    exact = problem(lengths, K, C, seed, several=several).to(torch.float64)
    (d_table, *others), step = gradients(exact.scores(leave_out=True), exact.leaves, seed), 1e-4
    direction = torch.randn(*exact.rows.shape, C, generator=generator_of(seed), dtype=torch.float64)
    for name, gradient in zip(("table", "scale", "mixing"), (d_table.to_dense(), *others), strict=False):
        leaf = getattr(exact, name).detach()
        toward = torch.randn(leaf.shape, generator=generator_of(seed + 1), dtype=torch.float64)
        with torch.no_grad():
            sums = [
                float((replace(exact, **{name: leaf + sign * step * toward}).scores(leave_out=True) * direction).sum())
                for sign in (1, -1)
            ]
        assert (sums[0] - sums[1]) / (2 * step) == pytest.approx(float((gradient * toward).sum()), abs=1e-6, rel=1e-6)


@given(ragged, K_OF_TESTS, st.sampled_from([1, 3, 20]), seeds)
@settings(max_examples=20)
def test_the_gradient_of_the_table_has_each_row_that_occurs_once_and_sorted(dtype, lengths, K, C, seed):
    one = problem(lengths, K, C, seed, several=False).to(dtype)
    (gradient,) = gradients(one.scores(leave_out=True), [one.table], seed)
    assert gradient.shape == one.table.shape
    if kernels() is not None and dtype is torch.float32:
        assert gradient.is_coalesced()
    gradient = gradient.coalesce()
    assert gradient.indices()[0].tolist() == sorted(set(one.rows[one.rows != NONE].tolist()))


@given(ragged, K_OF_TESTS, st.sampled_from([1, 3, 20]), seeds)
@settings(max_examples=20)
def test_rows_of_few_documents_do_not_learn(dtype, lengths, K, C, seed):
    one, least = problem(lengths, K, C, seed, several=False).to(dtype), 2.0
    result = one.scores(leave_out=True, least=least)
    assert torch.equal(result, one.scores(leave_out=True))
    (all_rows,) = gradients(one.scores(leave_out=True), [one.table], seed)
    (gradient,) = gradients(result, [one.table], seed)
    expected = all_rows.to_dense() * (one.counts.documents >= least)[:, None]
    torch.testing.assert_close(gradient.to_dense(), expected, **tolerance(dtype))


@given(ragged, K_OF_TESTS, st.sampled_from([2, 3, 20]), seeds, st.booleans())
@settings(max_examples=20)
def test_leaving_a_document_out_equals_counting_without_it(dtype, lengths, K, C, seed, several):
    """So a training document's label cannot reach its own evidence by the counts."""
    together = problem(lengths, K, C, seed, several=several).to(dtype)
    batch, offsets = together.batch, together.batch.word_offsets
    result = together.scores(leave_out=True)
    for d in range(batch.n_documents):
        others = torch.ones(batch.n_documents, dtype=dtype)
        others[d] = 0
        own = Own(together.own.labels * others[:, None], together.own.weights * others)
        by_class, documents = counted(batch, together.rows, len(together.table), own)
        counts = replace(together.counts, by_class=by_class, documents=documents)
        alone = replace(together, counts=counts).scores(leave_out=False)
        part = slice(offsets[d], offsets[d + 1])
        assert torch.equal(result[part], alone[part])


@given(ragged, K_OF_TESTS, st.sampled_from([2, 3, 20]), seeds, st.booleans(), st.booleans())
@settings(max_examples=20)
def test_each_document_may_have_shares_of_its_own(dtype, lengths, K, C, seed, several, leave_out):
    one = problem(lengths, K, C, seed, several=several).to(dtype)
    p = torch.rand(one.batch.n_documents, C, generator=generator_of(seed), dtype=dtype) * 0.9 + 0.05
    shift = -torch.logit(p) if several else -torch.log(p)
    result = replace(one, counts=replace(one.counts, prior=M * p, shift=shift)).scores(leave_out=leave_out)
    for d, (begin, end) in enumerate(pairwise(one.batch.word_offsets)):
        of_this = replace(one, counts=replace(one.counts, prior=M * p[d], shift=shift[d]))
        assert torch.equal(result[begin:end], of_this.scores(leave_out=leave_out)[begin:end])


@given(ragged, K_OF_TESTS, classes, seeds, st.booleans())
@settings(max_examples=10)
def test_counts_of_nothing_say_nothing(dtype, lengths, K, C, seed, several):
    """Whatever the shares of the classes: with several labels, these need not sum to 1."""
    one = problem(lengths, K, C, seed, several=several).to(dtype)
    counts = replace(
        one.counts, by_class=torch.zeros_like(one.counts.by_class), documents=torch.zeros_like(one.counts.documents)
    )
    result = replace(one, counts=counts, table=torch.zeros_like(one.table)).scores(leave_out=False)
    torch.testing.assert_close(result, torch.zeros_like(result), **tolerance(dtype))


@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_buckets_change_at_powers_of_two(dtype, buckets):
    documents = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 3.5, 4, 7, 8, 9, 1000, 2**20], dtype=dtype)
    expected = [oracle.bucket(number, buckets) for number in documents.tolist()]
    assert buckets_of(documents, buckets).tolist() == expected
    n = len(documents)
    by_class, half = documents[:, None] * torch.tensor([1, 0], dtype=dtype), torch.full((2,), 0.5, dtype=dtype)
    counts = Counts(by_class, documents, half, -half.log(), several=False)
    scale = torch.zeros(1, buckets, dtype=dtype, requires_grad=True)
    rows, weights = torch.arange(n)[:, None], torch.ones(n, 1, dtype=dtype)
    scores = seen_evidence(
        torch.zeros(n, 2, dtype=dtype), scale, counts, rows=rows, weights=weights,
        word_offsets=torch.tensor([0, n]), own=None,
    )  # fmt: skip
    ratios = counts.ratios(torch.arange(n))[0]
    (gradient,) = torch.autograd.grad(scores[:, 0, 0].sum(), scale)
    sums = [
        float(sum(r for r, b in zip(ratios[:, 0].tolist(), expected, strict=True) if b == k)) for k in range(buckets)
    ]
    assert gradient[0].tolist() == pytest.approx(sums, rel=1e-5)


def test_only_what_requires_a_gradient_has_one(dtype):
    one = problem([[5, 3], [4]], 3, 2, 0, several=False).to(dtype)
    fixed = replace(one, table=one.table.detach()).scores(leave_out=True)
    assert torch.autograd.grad(fixed.sum(), one.scale)[0].any()
    fixed = replace(one, scale=one.scale.detach()).scores(leave_out=True)
    assert torch.autograd.grad(fixed.sum(), one.table)[0].to_dense().any()
    assert not replace(one, table=one.table.detach(), scale=one.scale.detach()).scores(leave_out=True).requires_grad


def test_without_seen_phrases_there_is_no_evidence(dtype):
    """No rows in the table, or none found: zeros, and gradients of zeros."""
    one = problem([[4, 2]], 3, 2, 0, several=False).to(dtype)
    nothing = torch.full_like(one.rows, NONE)
    empty = replace(
        one, rows=nothing, table=torch.zeros(0, 2, dtype=dtype, requires_grad=True),
        counts=replace(one.counts, by_class=torch.zeros(0, 2, dtype=dtype), documents=torch.zeros(0, dtype=dtype)),
    )  # fmt: skip
    for case in (replace(one, rows=nothing), empty):
        scores = case.scores(leave_out=True)
        assert torch.equal(scores, torch.zeros_like(scores))
        d_table, d_scale = gradients(scores, [case.table, case.scale], 0)
        assert d_table.shape == case.table.shape
        assert not d_table.to_dense().any()
        assert not d_scale.any()


def test_mixed_precision_is_for_the_twin(dtype):
    """The kernels read float32 only: a tensor of float64 among the counts must not be taken for one."""
    one = problem([[4, 2], [3]], 2, 3, 0, several=False).to(dtype)
    expected = one.scores(leave_out=True).double()
    for name in ("documents", "prior", "shift"):
        counts = replace(one.counts, **{name: getattr(one.counts, name).double()})
        torch.testing.assert_close(
            replace(one, counts=counts).scores(leave_out=True).double(), expected, atol=1e-5, rtol=0
        )
    for name in ("labels", "weights"):
        own = replace(one.own, **{name: getattr(one.own, name).double()})
        torch.testing.assert_close(replace(one, own=own).scores(leave_out=True).double(), expected, atol=1e-5, rtol=0)


def test_views_are_read_as_they_are(dtype):
    one = problem([[4, 2], [3]], 2, 3, 0, several=True).to(dtype)
    turned = replace(
        one, rows=one.rows.T.contiguous().T, weights=one.weights.T.contiguous().T,
        scale=one.scale.detach().T.contiguous().T, own=Own(one.own.labels.T.contiguous().T, one.own.weights),
    )  # fmt: skip
    assert torch.equal(turned.scores(leave_out=True), one.scores(leave_out=True))
    same = one.weights[:1, :1].expand(one.rows.shape)
    assert torch.equal(
        replace(one, weights=same).scores(leave_out=True),
        replace(one, weights=same.contiguous()).scores(leave_out=True),
    )


# ------------------------------------------------------------------------------------------------------- the encoder


@given(st.integers(0, 40), K_OF_TESTS, classes, seeds)
@settings(max_examples=20)
def test_cohesion_is_added_to_every_class(dtype, words, K, C, seed):
    generator = generator_of(seed)
    evidence = torch.randn(words, K, C, generator=generator).to(dtype).requires_grad_()
    cohesion = torch.randn(words, K, generator=generator).to(dtype).requires_grad_()
    weights = torch.randn(words, K, C, generator=generator).to(dtype)
    result = add_cohesion(evidence.clone(), cohesion)
    torch.testing.assert_close(result, evidence + cohesion[:, :, None])
    gradients = torch.autograd.grad(result, [evidence, cohesion], weights)
    torch.testing.assert_close(gradients, (weights, weights.sum(dim=2)), **tolerance(dtype))
    with pytest.raises(IndexError, match="cohesion"):
        inspect.unwrap(add_cohesion)(evidence, torch.zeros(words + 1, K, dtype=dtype))


def encoder(batch: Batch, K: int, H: int, C: int, seed: int, dtype: torch.dtype) -> list[Tensor]:
    """Projections of the words, bias and output."""
    generator = generator_of(seed)
    sizes = (int(batch.words.max()) + 1, K, H), (K, H), (H, C)
    parts = (torch.randn(*size, generator=generator, dtype=torch.float64).to(dtype) for size in sizes)
    return [part.requires_grad_() for part in parts]


def encoded_batch(weights: list[Tensor], batch: Batch) -> Tensor:
    return encoded(*weights, torch.from_numpy(batch.words), torch.from_numpy(batch.sentence_offsets))


@given(ragged, K_OF_TESTS, hidden, classes, seeds)
@example([[6, 3], [9], [12, 1]], 4, 24, 20, 0)
@example([[2]] * 70, 3, 5, 2, 1)  # more than one task
@settings(max_examples=40)
def test_encoded_equals_the_formula(dtype, lengths, K, H, C, seed):
    batch = few_words(lengths, seed)
    weights = encoder(batch, K, H, C, seed, dtype)
    result = encoded_batch(weights, batch)
    arrays = (weight.detach().double().numpy() for weight in weights)
    expected = oracle.encoder_scores(*arrays, batch.words.tolist(), batch.sentence_offsets.tolist())
    torch.testing.assert_close(result.double(), torch.from_numpy(expected), **tolerance(dtype))
    with torch.no_grad():
        assert torch.equal(encoded_batch(weights, batch), result)


@given(ragged, K_OF_TESTS, hidden, classes, seeds)
@example([[6, 3], [9], [12, 1]], 4, 24, 20, 0)
@example([[2]] * 70, 3, 5, 2, 1)
@settings(max_examples=30)
def test_gradients_of_encoded_equal_those_in_double_precision(dtype, lengths, K, H, C, seed):
    batch, results = few_words(lengths, seed), []
    for precision in (dtype, torch.float64):
        weights = encoder(batch, K, H, C, seed, precision)
        of_weights = gradients(encoded_batch(weights, batch), weights, seed)
        assert [part.shape for part in of_weights] == [weight.shape for weight in weights]
        results.append([part.double() for part in of_weights])
    torch.testing.assert_close(*results, **tolerance(dtype, 1e-4))


@given(ragged, st.sampled_from([1, 2, 4]), st.sampled_from([1, 5]), st.sampled_from([1, 3]), seeds)
@settings(max_examples=5)
def test_gradients_of_encoded_equal_finite_differences(lengths, K, H, C, seed):
    batch = few_words([document[:2] for document in lengths[:2]], seed)
    weights = encoder(batch, K, H, C, seed, torch.float64)
    assert torch.autograd.gradcheck(lambda *parts: encoded_batch(list(parts), batch), weights, eps=1e-6, atol=1e-6)


def test_encoded_reads_views_and_gives_some_gradients(dtype):
    batch = few_words([[5, 3]], 0)
    weights = encoder(batch, 3, 5, 2, 0, dtype)
    turned = [weight.detach().transpose(-1, -2).contiguous().transpose(-1, -2) for weight in weights]
    assert torch.equal(encoded_batch(turned, batch), encoded_batch(weights, batch).detach())
    every = gradients(encoded_batch(weights, batch), weights, 0)
    for i, leaf in enumerate(weights):
        others = [weight if weight is leaf else weight.detach() for weight in weights]
        assert torch.equal(*gradients(encoded_batch(others, batch), [leaf], 0), every[i])


def test_no_words(dtype):
    nothing, offsets = torch.zeros(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    batch = few_words([[3]], 0)
    weights = encoder(batch, 2, 5, 3, 0, dtype)
    result = encoded(*weights, nothing, offsets)
    assert result.shape == (0, 2, 3)
    assert not any(part.any() for part in gradients(result, weights, 0))
    one = problem([[3]], 2, 3, 0, several=False).to(dtype)
    rows, none = nothing.view(0, 2), one.weights[:0]
    scores = seen_evidence(one.table, one.scale, one.counts, rows=rows, weights=none, word_offsets=offsets, own=None)
    assert scores.shape == (0, 2, 3)


# ----------------------------------------------------------------------------------------- threads, and wrong arguments


@pytest.mark.parametrize("C", [1, 3, 20])
def test_the_number_of_threads_does_not_change_a_bit(C):
    lengths = [[int(n) for n in row] for row in np.random.default_rng(0).integers(1, 40, (150, 3))]
    one = problem(lengths, 4, C, 0, several=False).to(torch.float32)
    weights = encoder(one.batch, 4, 24, C, 0, torch.float32)

    def run() -> list[Tensor]:
        seen, said = one.scores(leave_out=True), encoded_batch(weights, one.batch)
        d_table, d_scale = gradients(seen, [one.table, one.scale], 0)
        results = seen, said, d_table.to_dense(), d_scale, *gradients(said, weights, 0)
        return [result.detach() for result in results]

    check_threads_change_no_bit(run)


def unchecked(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """As users call it: without the run-time type checker of the tests, which would see wrong shapes first."""
    return inspect.unwrap(function)


def test_wrong_offsets_and_rows_are_errors_and_not_crashes(dtype):
    one = problem([[4, 2], [3]], 2, 3, 0, several=False).to(dtype)
    n, size = len(one.rows), len(one.table)
    arguments: dict[str, Any] = {
        "rows": one.rows, "weights": one.weights, "word_offsets": one.word_offsets, "own": one.own
    }  # fmt: skip
    weights, words = encoder(one.batch, 2, 5, 3, 0, dtype), torch.from_numpy(one.batch.words)
    for wrong in ([0, n - 1], [0, n + 1], [1, n], [0, 5, 4, n], []):
        offsets = torch.tensor(wrong, dtype=torch.int64)
        with pytest.raises(IndexError):
            seen_evidence(one.table, one.scale, one.counts, **arguments | {"word_offsets": offsets})
        with pytest.raises(IndexError):
            encoded(*weights, words, offsets)
    for wrong in (size, NONE - 1):
        rows = one.rows.clone()
        rows[3, 1] = wrong
        with pytest.raises(IndexError, match=f"for {size} rows"):
            seen_evidence(one.table, one.scale, one.counts, **arguments | {"rows": rows})
    for wrong in (len(weights[0]), -1):
        places = words.clone()
        places[3] = wrong
        with pytest.raises(IndexError, match=f"for {len(weights[0])} rows"):
            encoded(*weights, places, torch.from_numpy(one.batch.sentence_offsets))


def test_wrong_shapes_are_errors_and_not_crashes(dtype):
    one = problem([[4, 2], [3]], 2, 3, 0, several=False).to(dtype)
    c, own = one.counts, one.own
    wrong: dict[str, list[dict[str, Any]]] = {
        "weights": [{"weights": one.weights[1:]}, {"weights": one.weights[:, :1]}],
        "scale": [{"scale": one.scale[:1]}, {"scale": one.scale[:, :0]}],
        "counts by class": [{"table": torch.cat([one.table, one.table])}, {"table": one.table[:, :2]}],
        "own labels": [{"own": Own(own.labels[:1], own.weights[:1])}, {"own": Own(own.labels[:, :2], own.weights)}],
        "prior": [{"counts": unchecked_counts(c, prior=wrong)} for wrong in (c.prior[:2], c.prior.expand(3, 3))],
        "shift": [{"counts": unchecked_counts(c, shift=wrong)} for wrong in (c.shift[:2], c.shift.expand(2, 3))],
        "counts of documents": [{"counts": unchecked_counts(c, documents=c.documents[1:])}],
    }
    for name, cases in wrong.items():
        for case in cases:
            bad = replace(one, **case)
            with pytest.raises(IndexError, match=f"{name} of shape"):
                unchecked(seen_evidence)(
                    bad.table, bad.scale, bad.counts, rows=bad.rows, weights=bad.weights,
                    word_offsets=bad.word_offsets, own=bad.own,
                )  # fmt: skip
    projection, bias, output = encoder(one.batch, 2, 5, 3, 0, dtype)
    words, offsets = torch.from_numpy(one.batch.words), torch.from_numpy(one.batch.sentence_offsets)
    for name, weights in {"bias": (projection, bias[:1], output), "output": (projection, bias, output[:4])}.items():
        with pytest.raises(IndexError, match=f"{name} of shape"):
            unchecked(encoded)(*weights, words, offsets)


def unchecked_counts(counts: Counts, **wrong: Tensor) -> Counts:
    result = replace(counts)
    for name, value in wrong.items():
        object.__setattr__(result, name, value)
    return result
