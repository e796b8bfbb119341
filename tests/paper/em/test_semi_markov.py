"""The exact posterior over segmentations: every question against enumeration, and the laws of EM."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from emhrnn.layers.evidence import log_partition
from emhrnn.paper.em.semi_markov import SegmentPosterior
from tests.layers.segments import outside, problem, problems
from tests.layers.shapes import offsets_of
from tests.oracles.segmentations import enumerated, phrases

dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])  # native, and its torch twin
seeds = st.integers(0, 2**20)


def build(drawn, dtype):
    """The posterior, and the oracle of every sentence and class."""
    scores, offsets = problem(*drawn)
    scores = scores.to(dtype)
    return SegmentPosterior(scores, offsets), enumerated(scores.double().numpy(), offsets)


def close(dtype):
    return {"atol": 2e-5, "rtol": 1e-5} if dtype is torch.float32 else {"atol": 1e-11, "rtol": 1e-11}


@dtypes
@given(problems)
@example(([7, 1, 9], 3, 20, 0.2, 1))
@settings(max_examples=20)
def test_probabilities_equal_enumeration(dtype, drawn):
    posterior, oracle = build(drawn, dtype)
    for i, (begin, end) in enumerate(pairwise(posterior.sentence_offsets)):
        for y, true in enumerate(oracle[i]):
            expected = torch.from_numpy(true.posterior)
            ours = posterior.phrases[begin:end, :, y]
            torch.testing.assert_close(ours.double(), expected, **close(dtype))
            torch.testing.assert_close(posterior.gamma[begin:end, y].double(), expected.sum(1), **close(dtype))
            for value, wanted in ((posterior.log_partition, true.log_partition), (posterior.entropy, true.entropy)):
                torch.testing.assert_close(
                    value[i, y].double(), torch.tensor(wanted, dtype=torch.float64), **close(dtype)
                )


@dtypes
@given(problems)
@settings(max_examples=10)
def test_every_word_is_in_exactly_one_phrase(dtype, drawn):
    lengths, K, C, _, seed = drawn
    scores, offsets = problem(lengths, K, C, seed=seed)
    p = SegmentPosterior(scores.to(dtype), offsets).phrases
    held = torch.zeros(len(p), C, dtype=dtype)
    for t in range(len(p)):
        for k in range(K):
            if p[t, k].any():
                held[t - k : t + 1] += p[t, k]
    torch.testing.assert_close(held, torch.ones_like(held), **close(dtype))
    assert not p[outside(offsets, K)].any()


@dtypes
def test_entropy_is_log_partition_less_expected_score(dtype):
    scores, offsets = problem([9, 40, 3], 5, 3, seed=2)
    posterior = SegmentPosterior(scores.to(dtype), offsets)
    expected_score = (posterior.phrases * scores.nan_to_num()).sum(1)  # (words, classes)
    by_sentence = torch.stack([expected_score[a:b].sum(0) for a, b in pairwise(offsets)])
    torch.testing.assert_close(
        posterior.entropy.double(), posterior.log_partition.double() - by_sentence.double(), atol=1e-4, rtol=1e-4
    )


def test_entropy_of_a_long_sentence_in_single_precision():
    scores, offsets = problem([5000], 4, 2, seed=1, scale=10.0)
    ours, exact = (SegmentPosterior(scores.to(dtype), offsets).entropy for dtype in (torch.float32, torch.float64))
    torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=0)


@dtypes
@given(problems)
@settings(max_examples=10)
def test_log_probability_equals_enumeration(dtype, drawn):
    posterior, oracle = build(drawn, dtype)
    offsets = posterior.sentence_offsets
    rng = np.random.default_rng(drawn[-1])
    z = torch.from_numpy(rng.random((len(posterior.scores), drawn[2])) < 0.5)
    z[offsets[1:] - 1] = True
    ours = posterior.log_probability(z)
    for i, (begin, end) in enumerate(pairwise(offsets)):
        for y, true in enumerate(oracle[i]):
            same = (true.z == z[begin:end, y].numpy()).all(axis=1)
            p = true.probabilities[same].sum()  # 0 where a phrase is too long
            assert ours[i, y].exp().item() == pytest.approx(p, abs=1e-5)
            assert not ours[i, y].isnan()
    torch.testing.assert_close(posterior.log_probability(z[:, 0])[:, 0], ours[:, 0])


@dtypes
def test_the_best_has_the_highest_probability(dtype):
    posterior, oracle = build(([6, 9, 2], 4, 3, 0.2, 8), dtype)
    z, value = posterior.best()
    highest = torch.tensor([[true.probabilities.max() for true in sentence] for sentence in oracle])
    torch.testing.assert_close(posterior.log_probability(z).exp().double(), highest, **close(dtype))
    torch.testing.assert_close((value - posterior.log_partition).exp().double(), highest, **close(dtype))


@dtypes
@given(problems, st.integers(1, 12))
@settings(max_examples=20)
def test_k_best_equals_sorted_enumeration(dtype, drawn, n):
    posterior, oracle = build(drawn, dtype)
    z, values = posterior.k_best(n)
    for i, (begin, end) in enumerate(pairwise(posterior.sentence_offsets)):
        for y, true in enumerate(oracle[i]):
            first = true.best_first[:n]
            expected = np.full(n, -np.inf)
            expected[: len(first)] = true.values[first]
            np.testing.assert_allclose(values[:, i, y].double(), expected, atol=1e-5)
            cuts = z[:, begin:end, y].tolist()
            assert len({tuple(cut) for cut in cuts[: len(first)]}) == len(first)
            for cut, value in zip(cuts, expected, strict=True):
                if value > -np.inf:
                    own = sum(true.scores[t, width - 1] for t, width in phrases(cut))
                    assert own == pytest.approx(value, abs=1e-5)
                else:
                    assert cut == [False] * (len(cut) - 1) + [True]


@dtypes
def test_samples_have_the_probabilities_of_the_posterior(dtype):
    """Chi-square of 4,000 samples over all segmentations of each sentence and class."""
    n = 4000
    posterior, oracle = build(([5, 1, 4], 3, 2, 0.1, 11), dtype)
    z = posterior.sample(n, np.random.default_rng(0)).numpy()
    for i, (begin, end) in enumerate(pairwise(posterior.sentence_offsets)):
        for y, true in enumerate(oracle[i]):
            counts = np.array([(z[:, begin:end, y] == cut).all(axis=1).sum() for cut in true.z])
            assert counts.sum() == n
            possible = true.probabilities > 0
            assert not counts[~possible].any()
            if possible.sum() > 1:
                p = true.probabilities[possible]
                assert stats.chisquare(counts[possible], n * p / p.sum()).pvalue > 1e-3
    np.testing.assert_allclose(z.mean(axis=0), posterior.gamma, atol=4 * 0.5 / math.sqrt(n))


def test_samples_come_from_the_generator():
    scores, offsets = problem([9, 8, 12], 4, 2)
    posterior = SegmentPosterior(scores.float(), offsets)
    draws = [posterior.sample(3, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert posterior.sample(0, np.random.default_rng(0)).shape == (0, 29, 2)


def test_an_impossible_sentence_is_told_by_its_log_partition():
    scores, offsets = problem([4, 5], 2, 2, seed=3)
    scores[2:4, :, 0] = -math.inf
    posterior = SegmentPosterior(scores, offsets)
    assert posterior.log_partition[0, 0] == -math.inf
    assert not posterior.phrases[:4, :, 0].any()
    assert posterior.entropy[0, 0] == 0
    last_only = [False, False, False, True]
    assert posterior.sample(2, np.random.default_rng(0))[:, :4, 0].tolist() == [last_only] * 2
    assert posterior.k_best(2)[0][:, :4, 0].tolist() == [last_only] * 2
    z = torch.ones(9, dtype=torch.bool)
    assert posterior.log_probability(z)[0].tolist()[0] == -math.inf
    assert torch.isfinite(posterior.log_probability(z).flatten()[1:]).all()


def test_one_class_of_each_sentence():
    scores, offsets = problem([6, 3, 8], 3, 4, seed=6)
    posterior, classes = SegmentPosterior(scores, offsets), torch.tensor([2, 0, 3])
    one = posterior.of_classes(classes)
    rows = torch.arange(3)
    assert torch.equal(one.log_partition[:, 0], posterior.log_partition[rows, classes])
    assert torch.equal(one.entropy[:, 0], posterior.entropy[rows, classes])
    assert torch.equal(one.k_best(3)[1][:, :, 0], posterior.k_best(3)[1][:, rows, classes])


def test_wrong_arguments_are_errors():
    scores, offsets = problem([6, 3], 3, 4)
    posterior = SegmentPosterior(scores, offsets)
    with pytest.raises(IndexError, match="offsets"):
        SegmentPosterior(scores, offsets[:-1])
    with pytest.raises(IndexError, match="1 classes for 2 sentences"):
        posterior.of_classes(torch.tensor([0]))
    with pytest.raises(IndexError, match="for 4 rows"):
        posterior.of_classes(torch.tensor([0, 4]))
    with pytest.raises(ValueError, match="at least one"):
        posterior.k_best(0)
    with pytest.raises(ValueError, match="last word of every sentence"):
        posterior.log_probability(torch.zeros(9, dtype=torch.bool))
    with pytest.raises(IndexError, match=r"shape \(8, 4\) for 9 words"):
        posterior.log_probability(torch.ones(8, dtype=torch.bool))


def test_no_words_at_all():
    posterior = SegmentPosterior(torch.zeros(0, 3, 2), np.zeros(3, dtype=np.int64))
    assert posterior.log_partition.tolist() == posterior.entropy.tolist() == [[0, 0], [0, 0]]
    assert posterior.k_best(2)[1].tolist() == [[[0, 0], [0, 0]], [[-math.inf] * 2] * 2]
    assert posterior.sample(2, np.random.default_rng(0)).shape == (2, 0, 2)
    assert posterior.log_probability(torch.zeros(0, dtype=torch.bool)).tolist() == [[0, 0], [0, 0]]


# ------------------------------------------------------------------ the laws of EM


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 5), st.integers(2, 4), seeds)
@settings(max_examples=20)
def test_fishers_identity(lengths, K, C, seed):
    """The gradient of log p(y | w) is that of Q, whose posteriors of Z, and of the class, are frozen."""
    generator = torch.Generator().manual_seed(seed)
    offsets, types = offsets_of(lengths), 7
    words = torch.randint(types, (sum(lengths), K), generator=generator)  # a type for every candidate phrase
    table = torch.randn(types, C, generator=generator, dtype=torch.float64, requires_grad=True)
    cohesion = torch.randn(K, generator=generator, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(C, generator=generator, dtype=torch.float64, requires_grad=True)
    theta = (table, cohesion, bias)

    def scores():
        return torch.tanh(table)[words] * 2 + cohesion[:, None]  # (words, K, classes)

    y = seed % C
    logits = bias + log_partition(scores(), offsets).sum(0)
    by_likelihood = torch.autograd.grad(torch.log_softmax(logits, 0)[y], theta)
    frozen = SegmentPosterior(scores().detach(), offsets).phrases  # (words, K, classes)
    joint = bias + (frozen * scores()).sum((0, 1))  # E[log joint] of every class, but for the normaliser
    Q = joint[y] - (torch.softmax(logits.detach(), 0) * joint).sum()
    by_q = torch.autograd.grad(Q, theta)
    for ours, theirs in zip(by_likelihood, by_q, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)


@given(st.lists(st.integers(1, 14), min_size=2, max_size=8), st.integers(1, 4), seeds)
@settings(max_examples=20)
def test_exact_em_never_lowers_the_likelihood(lengths, K, seed):
    """Sentences are drawn phrase by phrase, each type of phrase with a probability of its own. Its M-step is the
    expected count over all segmentations, divided by the sum of all counts (multigrams: Deligne and Bimbot, 1995)."""
    rng = np.random.default_rng(seed)
    offsets, words = offsets_of(lengths), rng.integers(3, size=sum(lengths))
    inside = ~outside(offsets, K)
    names = [[str(words[max(t - k, 0) : t + 1]) for k in range(K)] for t in range(len(words))]
    _, types = np.unique(names, return_inverse=True)
    types = torch.from_numpy(types.reshape(len(words), K))
    inside = torch.from_numpy(inside)
    p = torch.zeros(int(types.max()) + 1, dtype=torch.float64)
    p[types[inside]] = torch.from_numpy(rng.random(int(inside.sum()))) + 0.1
    p /= p.sum()
    likelihood = []
    for _ in range(15):
        posterior = SegmentPosterior(p.log()[types][:, :, None], offsets)
        likelihood.append(posterior.log_partition.sum().item())
        count = torch.zeros_like(p).index_add_(0, types.flatten(), posterior.phrases[:, :, 0].flatten())
        p = count / count.sum()
    gains = np.diff(likelihood)
    assert (gains > -1e-10).all()
    assert likelihood[-1] <= 0
    assert gains.sum() > 0 or K == 1  # single words: one step is enough, and may gain nothing
