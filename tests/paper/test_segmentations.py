"""The mean over drawn segmentations against the exact sum over all of them."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.paper.em.blocks import exact_blocks
from emhrnn.paper.em.steps import e_step
from emhrnn.paper.models.em_hrnn import EMHRNN
from emhrnn.paper.segmentations import Marginal
from tests.paper.em.examples import CLASSES, make_batch, small_model


def every_segmentation(model: EMHRNN, batch: Batch) -> Iterator[tuple[np.ndarray, float, torch.Tensor]]:
    """z, p(z | w) and p(y | z, w) of a batch of one document."""
    states = model.words(batch)
    pi = torch.sigmoid(states.a).numpy()
    free = np.flatnonzero(~batch.sentence_final)
    for setting in itertools.product([False, True], repeat=len(free)):
        z = batch.sentence_final.copy()
        z[free] = setting
        yield z, float(np.where(z, pi, 1 - pi)[free].prod()), torch.softmax(model.encode(batch, states, z).logits, 1)


@torch.no_grad()
def test_the_mean_over_many_is_the_sum_over_all() -> None:
    model, batch = small_model(0), make_batch([[3, 2]])
    exact = sum(p_z * p_y for _, p_z, p_y in every_segmentation(model, batch))
    found = Marginal(model, drawn=20)(copies(batch, 100)).logits.exp().mean(0, keepdim=True)
    torch.testing.assert_close(found, exact, rtol=0.02, atol=0.005)
    again, other = Marginal(model)(batch), Marginal(model)(batch)
    assert torch.equal(again.logits, other.logits)


@torch.no_grad()
def test_bits_are_those_of_the_whole_posterior() -> None:
    """What the label tells about the phrases, by the definition: how far each label's posterior is from the prior."""
    model, batch = small_model(1, votes=20.0), make_batch([[3, 2]])
    told = 0.0
    for y in range(CLASSES):
        labelled = copies(batch, 1, label=y)
        states = model.words(labelled)
        posterior = e_step(model, labelled, states, labelled.sentence_final, exact_blocks(labelled, 20))
        r, prior = posterior.responsibilities[0], posterior.log_prior[0]
        told += float(posterior.evidence.exp() * (r * (r.log() - prior)).sum()) / np.log(2)
        to_tell = -float((prior.exp() * prior).sum()) / np.log(2)
    marginal = Marginal(model, drawn=100)
    marginal(copies(batch, 40))
    assert told > 0.05
    assert marginal.label_bits[0].mean().item() == pytest.approx(told, rel=0.05)
    assert marginal.boundary_bits[0][0].item() == pytest.approx(to_tell, rel=1e-9)


@torch.no_grad()
def test_few_draws_tell_as_much_as_many() -> None:
    model, batch = small_model(3, votes=0.2), make_batch([[6, 5]])  # phrases that hardly matter
    few, many = Marginal(model, drawn=3), Marginal(model, drawn=50)
    few(copies(batch, 1000)), many(copies(batch, 100))
    assert few.label_bits[0].mean().item() == pytest.approx(many.label_bits[0].mean().item(), rel=0.1)


@torch.no_grad()
def test_at_a_high_temperature_phrases_hardly_matter() -> None:
    model, batch = small_model(0), make_batch([[3, 2], [4]])
    plain, hot = Marginal(model), Marginal(model, temperature=100.0)
    plain(batch), hot(batch)
    assert (hot.label_bits[0] < plain.label_bits[0] / 100).all()


def copies(batch: Batch, times: int, label: int = 0) -> Batch:
    """A batch of one document, which has come so often."""
    document = [part.tolist() for part in np.split(batch.words, batch.sentence_offsets[1:-1])]
    return Batch.from_lists([document] * times, [label] * times)
