"""Does EM find what is there, and nothing that is not? The paper's simulation in small (SPEC section 8: 9; 1.10).

Documents of two sentences of five random tokens; labels from a teacher network whose upper layers are known; only the
indicator is learned. Since theta is fixed, the likelihood of all 256 configurations is computed once.
"""

import numpy as np
import pytest
import torch

from emhrnn.corpus.batch import Batch
from emhrnn.em.blocks import exact_blocks
from emhrnn.em.likelihood import document_logits, sentence_vectors
from emhrnn.em.plan import make_plan
from emhrnn.em.steps import newton_indicator, weigh
from emhrnn.models.em_hrnn import EMHRNN, WordStates

DOCUMENTS, TRAINED = 2400, 1600
CLASSES, SIZE = 5, 50


def teacher(generator):
    """Random vectors for every token of every document; strong layers, so that boundaries matter for the label."""
    table = torch.randn(DOCUMENTS * 10, SIZE, generator=generator)
    table[4::5] = table[4]  # the token that ends a sentence is one common vector
    model = EMHRNN(table=table, classes=CLASSES, generator=generator)
    with torch.no_grad():
        for parameter in model.word_layer.parameters():
            parameter.mul_(2)
        for name in ("phrase_layer", "sentence_forward", "sentence_backward"):
            for parameter in getattr(model, name).parameters():
                parameter.mul_(6)
        for name in ("word_attention", "phrase_attention", "sentence_attention"):
            for parameter in getattr(model, name).parameters():
                parameter.mul_(6)
    return model


@pytest.fixture(scope="module")
def world():
    """Model, documents, their word states, and log p(y | Z, w) of every class for all 256 Z of each document."""
    generator = torch.Generator().manual_seed(3)
    model = teacher(generator)
    words = np.arange(DOCUMENTS * 10).reshape(DOCUMENTS, 2, 5)
    batch = Batch.from_lists(words.tolist(), [0] * DOCUMENTS)
    with torch.no_grad():
        states = model.words(batch)
        plan = make_plan(batch, batch.sentence_final, exact_blocks(batch))
        s = sentence_vectors(model, states.h1, states.scores, plan.sentences)
        logits = document_logits(model, s, plan.documents)[torch.from_numpy(plan.documents.configurations)]
    logits = logits - logits.mean((0, 1))  # centred and scaled, so that all labels occur
    return model, batch, states, torch.log_softmax(logits / logits.std() * 8, dim=2)


@torch.no_grad()
def recovery(world, z_true):
    """Total recovery (forced ends included) of the true z by pi > 0.5 on held-out documents, after exact EM."""
    model, batch, states, log_p = world
    generator = torch.Generator().manual_seed(4)
    truth = (z_true[exact_blocks(batch).positions] << np.arange(8)).sum(1)
    labels = torch.multinomial(log_p[torch.arange(DOCUMENTS), torch.from_numpy(truth)].exp(), 1, generator=generator)
    likelihood = log_p.gather(2, labels[:, :, None].expand(-1, 256, 1)).squeeze(2)

    # labels of held-out documents are not looked at
    n = TRAINED * 10
    train = Batch.from_lists(batch.words[:n].reshape(TRAINED, 2, 5).tolist(), labels[:TRAINED, 0].tolist())
    blocks, mask = exact_blocks(train), torch.from_numpy(~train.sentence_final)
    torch.nn.init.normal_(model.indicator.weight, std=0.01, generator=generator)
    torch.nn.init.zeros_(model.indicator.bias)
    for _ in range(60):
        seen = WordStates(states.h1[:n], states.scores[:n], model.indicator(states.h1[:n]).squeeze(1))
        posterior = weigh(train, seen, blocks, likelihood[:TRAINED])
        newton_indicator(model.indicator, seen.h1, posterior.marginals(), mask)
    z = (model.indicator(states.h1).squeeze(1) > 0).numpy() | batch.sentence_final
    return (z == z_true)[n:].mean()


def test_boundaries_that_follow_from_the_tokens_are_recovered(world):
    _, batch, states, _ = world
    direction = states.h1 @ torch.randn(SIZE, generator=torch.Generator().manual_seed(5))
    z_true = (direction > direction.median()).numpy() | batch.sentence_final
    assert recovery(world, z_true) >= 0.98


def test_boundaries_that_do_not_are_not(world):
    """Half of the free positions right by chance, and two of ten given: 60 %. More would be a leak."""
    z_true = (np.random.default_rng(6).random(DOCUMENTS * 10) < 0.5) | world[1].sentence_final
    assert recovery(world, z_true) == pytest.approx(0.60, abs=0.01)
