"""Learning in small: what can be recovered is, what cannot is not, and nothing of the test documents leaks.
(docs/paper.md 8: 9)"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from emhrnn.models.model import log_likelihood
from emhrnn.paper.em.blocks import exact_blocks
from emhrnn.paper.em.steps import e_step
from emhrnn.paper.simulation import EM_METHODS
from emhrnn.paper.simulation.learners import (
    DETECTORS,
    Schedule,
    learn_all,
    learn_detector,
    learn_indicator,
    newton_indicator,
)
from emhrnn.paper.simulation.world import WorldSetting, make_world, recovered, with_label, without_label
from tests.paper.em.examples import make_batch, random_z, seeds, small_model


def last(models):
    *_, model = models
    return model


def exact(batch, _):
    return exact_blocks(batch)


@pytest.fixture(scope="module")
def learnable():
    """By a teacher that is surer than that of Table 1, so that a few documents tell."""
    return make_world("state", 0, train=1600, test=500, setting=WorldSetting(attention_gain=16.0, sharpness=16.0))


@pytest.mark.parametrize(("method", "least"), [("window-1", 0.97), ("exact", 0.98)])
def test_boundaries_that_follow_from_the_word_state_are_recovered(learnable, method, least):
    world = learnable
    model = last(learn_indicator(world, EM_METHODS[method], 0, rounds=30))
    assert recovered(world.test, without_label(model, world.test), world.z_test).all >= least
    found, log_p = with_label(model, world.test)
    torch.testing.assert_close(log_p.exp().sum(dim=1), torch.ones(len(log_p)), rtol=0, atol=1e-4)
    assert recovered(world.test, found, world.z_test).all >= least
    assert log_likelihood(log_p, torch.from_numpy(world.test.labels)).mean() > np.log(1 / 5)


def test_independent_boundaries_are_not_recovered():
    """The guard against leakage: half of the free positions are right, by chance, and two of ten are given."""
    world = make_world("independent", 0, train=800, test=1000)
    model = last(learn_indicator(world, exact, 0, rounds=10))
    found = recovered(world.test, without_label(model, world.test), world.z_test)
    assert found.free == pytest.approx(0.5, abs=0.0125)  # of 8,000 coin tosses
    assert found.all == pytest.approx(0.6, abs=0.01)


def test_the_printed_q_leaves_the_indicator_where_it_started():
    world = make_world("state", 0, train=100, test=20)
    assert not [*learn_indicator(world, exact, 0, rounds=0)]
    began = without_label(world.teacher, world.test)
    ended = without_label(last(learn_indicator(world, exact, 0, rounds=5, printed_q=True)), world.test)
    assert (began == ended).all()


def test_true_boundaries_and_test_documents_have_no_part_in_learning():
    world = make_world("vocabulary", 0, train=60, test=20)
    blind = replace(
        world,
        z_train=~world.z_train,
        z_test=~world.z_test,
        test=make_world("vocabulary", 9, train=2, test=20).test,
    )
    schedule = Schedule(epochs=2, documents=30)
    for learn in (
        lambda world: learn_all(world, exact, 0, schedule, 1e-2),
        lambda world: learn_detector(world, "hm-rnn", 0, schedule, 1e-2),
    ):
        for a, b in zip(last(learn(world)).parameters(), last(learn(blind)).parameters(), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("method", DETECTORS)
def test_detectors_learn_the_labels(method):
    world = make_world("vocabulary", 0, train=200, test=20)

    @torch.no_grad()
    def loss(model):
        return torch.nn.functional.cross_entropy(model(world.train).logits, torch.from_numpy(world.train.labels))

    epochs = [loss(last(learn_detector(world, method, 0, Schedule(epochs=n, documents=50), 5e-3))) for n in (1, 4)]
    assert epochs[1] < epochs[0]


@given(seeds)
@settings(max_examples=3, deadline=None)
def test_exact_em_with_newton_steps_never_lowers_the_likelihood(seed):
    model, batch = small_model(seed, votes=20), make_batch([[4, 3], [5], [1, 3], [2, 2]], seed)
    z, mask = random_z(batch, seed), torch.from_numpy(~batch.sentence_final)
    evidence = []
    for _ in range(8):
        states = model.words(batch)
        posterior = e_step(model, batch, states, z, exact_blocks(batch))
        evidence.append(posterior.evidence.sum().item())
        newton_indicator(model.indicator, states.h1, posterior.marginals(), mask)
    assert (np.diff(evidence) >= -1e-9).all()
    assert evidence[-1] > evidence[0]


def test_newton_reaches_the_fixed_point():
    model = small_model()
    h1 = torch.randn(200, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    gamma = torch.sigmoid(h1 @ torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64) + 0.3)
    mask = torch.ones(200, dtype=torch.bool)
    for _ in range(20):
        newton_indicator(model.indicator, h1, gamma, mask)
    torch.testing.assert_close(torch.sigmoid(model.indicator(h1).squeeze(1)), gamma, rtol=0, atol=1e-4)


def test_newton_without_targets_changes_nothing():
    model = small_model()
    before = model.indicator.weight.clone()
    newton_indicator(model.indicator, torch.zeros(3, 4), torch.zeros(3), torch.zeros(3, dtype=torch.bool))
    assert (model.indicator.weight == before).all()
