"""Sums and maxima over segmentations: the native kernels and the NumPy twin against enumeration of all of them."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from torch import Tensor

from emhrnn.layers import semi_markov
from emhrnn.layers.evidence import log_partition
from emhrnn.layers.native import native_kernels
from tests.back_ends import check_threads_change_no_bit
from tests.layers.segments import on_tensors, outside, problem, problems
from tests.oracles.segmentations import Enumeration, enumerated, phrases

backward_pass, best_cut, forward_pass, increments = (
    on_tensors(getattr(semi_markov, name)) for name in ("backward_pass", "best_cut", "forward_pass", "increments")
)


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    return {"atol": 1e-5, "rtol": 1e-5} if dtype is torch.float32 else {"atol": 1e-12, "rtol": 1e-12}


def rounded(scores: Tensor, dtype: torch.dtype) -> tuple[Tensor, np.ndarray]:
    """Scores that require a gradient, and the same numbers for the oracle."""
    scores = scores.to(dtype)
    return scores.clone().requires_grad_(), scores.double().numpy()


@given(problems)
@example(([7, 1, 9], 3, 20, 0.2, 1))
@example(([5, 8], 4, 33, 0.0, 2))
@example(([3, 2, 4], 9, 17, 0.6, 3))
@settings(max_examples=30)
def test_log_partition_and_posterior_equal_enumeration(dtype, drawn):
    scores, offsets = problem(*drawn)
    leaf, values = rounded(scores, dtype)
    result = log_partition(leaf, offsets)  # (sentences, classes)
    weights = torch.randn(result.shape, generator=torch.Generator().manual_seed(drawn[-1])).to(dtype)
    (gradient,) = torch.autograd.grad(result, leaf, weights)
    oracle = enumerated(values, offsets)
    expected = torch.tensor([[of_class.log_partition for of_class in sentence] for sentence in oracle])
    torch.testing.assert_close(result.detach().double(), expected.double(), **tolerance(dtype))
    posterior = np.concatenate([np.stack([one.posterior for one in sentence], axis=-1) for sentence in oracle])
    weighted = torch.from_numpy(posterior) * weights.double().repeat_interleave(
        torch.from_numpy(np.diff(offsets)), dim=0
    ).unsqueeze(1)
    torch.testing.assert_close(gradient.double(), weighted, **tolerance(dtype))
    assert not gradient[outside(offsets, drawn[1])].any()
    assert not gradient[leaf.detach() == -math.inf].any()
    with torch.no_grad():
        assert torch.equal(log_partition(leaf, offsets), result.detach())


def prefix_sums(scores: np.ndarray) -> np.ndarray:
    """alpha of 0, 1, ... words of a sentence, each by enumeration; scores (words, K)."""
    return np.array([0.0, *(Enumeration.of(scores[:t]).log_partition for t in range(1, len(scores) + 1))])


def suffix_sums(scores: np.ndarray) -> np.ndarray:
    """beta after 0, 1, ... words: without the first words, candidates that begin there reach over the start."""
    return np.array([*(Enumeration.of(scores[t:]).log_partition for t in range(len(scores))), 0.0])


def steps(sums: np.ndarray) -> np.ndarray:
    """From one finite sum to the next; 0 for a word whose sum is -inf."""
    finite = np.flatnonzero(sums > -np.inf)
    result = np.zeros(len(sums) - 1)
    result[finite[1:] - 1] = np.diff(sums[finite])
    return result


@given(problems)
@example(([7, 1, 9], 3, 20, 0.2, 1))
@example(([5, 8], 4, 33, 0.0, 2))
@settings(max_examples=20)
def test_increments_equal_enumeration(dtype, drawn):
    scores, offsets = problem(*drawn)
    scores = scores.to(dtype)
    values = scores.double().numpy()
    for from_right in (False, True):
        log_z, d = increments(scores, offsets, from_right=from_right)
        torch.testing.assert_close(log_z, log_partition(scores, offsets), **tolerance(dtype))
        for begin, end in pairwise(offsets):
            for y in range(drawn[2]):
                own = values[begin:end, :, y]
                expected = steps(suffix_sums(own)[::-1])[::-1] if from_right else steps(prefix_sums(own))
                np.testing.assert_allclose(d[begin:end, y], expected, atol=1e-4 if dtype is torch.float32 else 1e-11)


def test_increments_of_a_long_sentence_add_up(dtype):
    scores, offsets = problem([5000, 3], 4, 3, seed=1)
    for from_right in (False, True):
        log_z, d = increments(scores.to(dtype), offsets, from_right=from_right)
        sums = torch.stack([d[:5000].double().sum(dim=0), d[5000:].double().sum(dim=0)])
        torch.testing.assert_close(log_z.double(), sums, rtol=1e-6, atol=1e-6)


@given(problems)
@example(([7, 1, 9], 3, 20, 0.2, 1))
@settings(max_examples=20)
def test_best_cut_equals_enumeration(dtype, drawn):
    scores, offsets = problem(*drawn)
    leaf, values = rounded(scores, dtype)
    z, value = best_cut(leaf.detach(), offsets)
    for i, sentence in enumerate(enumerated(values, offsets)):
        for y, oracle in enumerate(sentence):
            assert value[i, y].item() == pytest.approx(oracle.values.max(), abs=1e-5)
            cut = z[offsets[i] : offsets[i + 1], y].tolist()
            if oracle.values.max() > -np.inf:
                own = sum(oracle.scores[t, width - 1] for t, width in phrases(cut))
                assert own == pytest.approx(oracle.values.max(), abs=1e-5)
            else:
                assert cut == [False] * (len(cut) - 1) + [True]


@given(problems)
@example(([7, 1, 9], 3, 20, 0.2, 1))
@settings(max_examples=20)
def test_best_cut_of_one_class_is_a_column_of_all(dtype, drawn):
    scores, offsets = problem(*drawn)
    scores = scores.to(dtype)
    every, values = best_cut(scores, offsets)
    classes = torch.randint(drawn[2], (len(drawn[0]),), generator=torch.Generator().manual_seed(drawn[-1]))
    z, value = best_cut(scores, offsets, classes)
    assert torch.equal(value, values[torch.arange(len(classes)), classes])
    of_word = classes.repeat_interleave(torch.from_numpy(np.diff(offsets)))
    assert torch.equal(z, every[torch.arange(len(z)), of_word])


@given(problems)
@example(([7, 1, 9], 3, 20, 0.2, 1))
@settings(max_examples=20)
def test_what_the_ends_of_phrases_add_counts_for_every_width(dtype, drawn):
    scores, offsets = problem(*drawn)
    scores = scores.to(dtype)
    ends = torch.randn(len(scores), generator=torch.Generator().manual_seed(drawn[-1])).to(dtype)
    z, value = best_cut(scores, offsets, ends=ends.numpy())
    z_of_sums, value_of_sums = best_cut(scores + ends[:, None, None], offsets)
    torch.testing.assert_close(value, value_of_sums, rtol=1e-4, atol=1e-4)
    if dtype == torch.float64:  # float32 may round two equally good segmentations apart
        assert torch.equal(z, z_of_sums)


@given(problems)
@settings(max_examples=10)
def test_gradients_equal_finite_differences(drawn):
    lengths, K, C, _, seed = drawn
    scores, offsets = problem(lengths, K, C, seed=seed)
    scores = torch.nan_to_num(scores).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: log_partition(x, offsets), scores, eps=1e-6, atol=1e-7)


def test_q_is_the_probability_of_each_width(dtype):
    scores, offsets = problem([6, 3, 9], 4, 3, forbidden=0.2, seed=5)
    scores = scores.to(dtype)
    log_z, q = forward_pass(scores, offsets)
    assert torch.equal(log_z, log_partition(scores, offsets))
    mass = q.sum(dim=1)
    torch.testing.assert_close(mass, (mass > 0).to(dtype), **tolerance(dtype))
    (posterior,) = backward_pass(q, offsets, torch.ones_like(log_z))
    gamma = posterior.sum(dim=1, keepdim=True)
    torch.testing.assert_close(posterior, gamma * q, **tolerance(dtype))


@pytest.mark.parametrize(("scale", "accuracy"), [(1.0, 1e-5), (10.0, 3e-5)])
def test_long_sentences_in_single_precision(dtype, scale, accuracy):
    """5,000 words, and scores up to +-30: against double precision."""
    rng = np.random.default_rng(0)
    offsets = np.array([0, 5000, 5003], dtype=np.int64)
    scores = torch.from_numpy(np.clip(rng.normal(size=(5003, 4, 3)) * scale, -3 * scale, 3 * scale))
    scores[:, :, 2] = scale  # constant: a rounding that always goes one way
    leaf, values = rounded(scores, dtype)
    exact = torch.from_numpy(values).requires_grad_()
    result, expected = log_partition(leaf, offsets), log_partition(exact, offsets)
    torch.testing.assert_close(result.double(), expected, rtol=1e-6, atol=1e-6)
    (ours,), (theirs,) = (torch.autograd.grad(total.sum(), x) for total, x in ((result, leaf), (expected, exact)))
    torch.testing.assert_close(ours.double(), theirs, rtol=10 * accuracy, atol=accuracy)
    z, value = best_cut(leaf.detach(), offsets)
    z_exact, value_exact = best_cut(exact.detach(), offsets)
    assert torch.equal(z[:, :2], z_exact[:, :2])
    torch.testing.assert_close(value.double(), value_exact, rtol=1e-6, atol=0)


def test_a_fixed_segmentation(dtype):
    """All phrases forbidden but those of one segmentation: alpha is -inf inside them."""
    scores, offsets = problem([7, 5], 3, 2, seed=3)
    wanted = [(2, 3), (3, 1), (6, 3), (8, 2), (11, 3)]
    allowed = torch.full_like(scores, -math.inf)
    for t, width in wanted:
        allowed[t, width - 1] = scores[t, width - 1]
    leaf = allowed.to(dtype).requires_grad_()
    result = log_partition(leaf, offsets)
    sums = [sum(leaf[t, k - 1] for t, k in part) for part in (wanted[:3], wanted[3:])]
    torch.testing.assert_close(result, torch.stack(sums))
    (gradient,) = torch.autograd.grad(result.sum(), leaf)
    assert torch.equal(gradient, (allowed > -math.inf).to(dtype))
    z, value = best_cut(leaf.detach(), offsets)
    assert z[:, 0].nonzero().flatten().tolist() == [t for t, _ in wanted]
    torch.testing.assert_close(value, result.detach())


def test_an_impossible_sentence_leaves_the_others_alone(dtype):
    scores, offsets = problem([4, 5], 2, 2, seed=3)
    scores[2, :, 0] = scores[3, :, 0] = -math.inf  # words 2 and 3 of sentence 0 end no phrase
    leaf = scores.to(dtype).requires_grad_()
    result = log_partition(leaf, offsets)
    assert result[0, 0] == -math.inf
    assert torch.isfinite(result.flatten()[1:]).all()
    (gradient,) = torch.autograd.grad(torch.logsumexp(result, dim=0).sum(), leaf)
    assert not gradient[:4, :, 0].any()
    assert torch.isfinite(gradient).all()
    (gradient,) = torch.autograd.grad(log_partition(leaf, offsets), leaf, torch.full_like(result, torch.nan))
    assert not gradient[:4, :, 0].any()  # whatever the loss makes of -inf


def test_not_a_number_stays_one(dtype):
    for k in range(3):
        scores, offsets = problem([6, 6], 3, 2, forbidden=0.5, seed=4)
        scores[4, :, 0] = -math.inf
        scores[4, k, 0] = torch.nan
        scores[5, 0, 0] = 0.0
        scores[:3, 0] = 0.0
        result = log_partition(scores.to(dtype), offsets)
        assert result[0, 0].isnan()
        assert not result.flatten()[1:].isnan().any()


def test_no_words_no_sentences_and_empty_sentences(dtype):
    none = torch.zeros(0, 3, 2, dtype=dtype)
    assert log_partition(none, np.zeros(1, dtype=np.int64)).shape == (0, 2)
    assert log_partition(none, np.zeros(3, dtype=np.int64)).tolist() == [[0, 0], [0, 0]]
    leaf = torch.ones(2, 3, 1, dtype=dtype, requires_grad=True)
    result = log_partition(leaf, np.array([0, 0, 2, 2]))
    assert result.flatten().tolist() == pytest.approx([0, math.log(math.e + math.e**2), 0])
    assert torch.autograd.grad(result.sum(), leaf)[0].sum() == pytest.approx(1 + 1 / (1 + math.exp(-1)))
    z, value = best_cut(leaf.detach(), torch.tensor([0, 0, 2, 2]))
    assert z.flatten().tolist() == [True, True]
    assert value.flatten().tolist() == [0, 2, 0]
    assert log_partition(torch.zeros(2, 3, 0, dtype=dtype), np.array([0, 2])).shape == (1, 0)


def test_views_and_broadcast_scores_are_read_as_they_are(dtype):
    scores, offsets = problem([6, 3], 3, 4, seed=1)
    scores = torch.nan_to_num(scores).to(dtype)
    turned = scores.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    assert torch.equal(log_partition(turned, offsets), log_partition(scores, offsets))
    assert torch.equal(best_cut(turned, offsets)[0], best_cut(scores, offsets)[0])
    free = scores[:, :, :1].expand(-1, -1, 4)
    assert torch.equal(log_partition(free, offsets)[:, 0], log_partition(free, offsets)[:, 3])


@pytest.mark.parametrize("C", [1, 2, 5, 20])
def test_the_number_of_threads_does_not_change_a_bit(C):
    lengths = np.random.default_rng(0).integers(0, 40, 500).tolist()
    scores, offsets = problem(lengths, 4, C, forbidden=0.1)
    leaf = scores.float().requires_grad_()

    def run() -> list[Tensor]:
        result = log_partition(leaf, offsets)
        (gradient,) = torch.autograd.grad(result.nan_to_num(neginf=0).sum(), leaf)
        return [result.detach(), gradient, *best_cut(leaf, offsets)]

    check_threads_change_no_bit(run, (1, 2, 3))


@native_kernels(True)
def test_a_sentence_does_not_depend_on_the_others():
    """Bit for bit, whatever stands in the lanes beside it."""
    scores, offsets = problem([9, 4, 7, 30, 2, 1, 5, 16, 17], 4, 3)
    scores = scores.float()
    together = log_partition(scores, offsets)
    alone = [log_partition(scores[a:b], np.array([0, b - a])) for a, b in pairwise(offsets)]
    assert torch.equal(together, torch.cat(alone))


def test_wrong_arguments_are_errors_and_not_crashes(dtype):
    scores = torch.zeros(5, 2, 3, dtype=dtype)
    for wrong in ([0, 4], [0, 6], [1, 5], [0, 4, 3, 5], []):
        offsets = np.array(wrong, dtype=np.int64)
        for function in (log_partition, forward_pass, increments, best_cut):
            with pytest.raises(IndexError, match="offsets"):
                function(scores, offsets)
    right = np.array([0, 2, 5])
    with pytest.raises(IndexError, match="K >= 1"):
        log_partition(torch.zeros(5, 0, 3, dtype=dtype), right)
    with pytest.raises(IndexError, match="3 classes for 2 sentences"):
        best_cut(scores, right, torch.tensor([0, 1, 2]))
    for wrong in ([0, 3], [-1, 0]):
        with pytest.raises(IndexError, match="for 3 rows"):
            best_cut(scores, right, torch.tensor(wrong))
    with pytest.raises(IndexError, match=r"weights of shape \(3, 3\); it must be \(2, 3\)"):
        backward_pass(scores, right, torch.zeros(3, 3, dtype=dtype))
