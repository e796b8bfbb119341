"""Small models and ragged batches for the tests of the EM engine."""

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.paper.em.blocks import Blocks
from emhrnn.paper.em.likelihood import configuration_likelihood
from emhrnn.paper.em.steps import log_prior
from emhrnn.paper.models.em_hrnn import EMHRNN, WordStates
from emhrnn.shapes import Bool, Float
from tests.models.examples import paper_network

VOCABULARY, CLASSES = 12, 3


def small_model(
    seed: int = 0,
    *,
    bidirectional_words: bool = False,
    scale: float = 3.0,
    votes: float = 4.0,
    classes: int = CLASSES,
) -> EMHRNN:
    """Tiny layers of different sizes with large weights: label and boundaries must matter. Seeds go through
    all kinds: with skip if the seed is odd, of GRUs if half of it is."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(VOCABULARY, 5, generator=generator)
    model = EMHRNN(
        paper_network(
            word_size=4, phrase_size=3, sentence_size=5, attention_size=6, bidirectional_words=bidirectional_words,
            cell="gru" if seed // 2 % 2 else "lstm", skip=seed % 2 == 1,
        ),
        table=table, classes=classes, generator=generator,
    )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
        model.output.weight.mul_(votes)
        model.indicator.bias.zero_()
    return model.double()


def make_batch(lengths: list[list[int]], seed: int = 0, classes: int = CLASSES) -> Batch:
    """Documents whose sentences have these lengths."""
    rng = np.random.default_rng(seed)
    documents = [[rng.integers(0, VOCABULARY, n).tolist() for n in document] for document in lengths]
    return Batch.from_lists(documents, rng.integers(0, classes, len(lengths)).tolist())


def random_z(batch: Batch, seed: int = 0, rate: float = 0.4):
    return (np.random.default_rng(seed).random(batch.n_words) < rate) | batch.sentence_final


def shapes(documents: int = 4, sentences: int = 4, words: int = 6):
    """Sentence lengths of a few ragged documents."""
    return st.lists(st.lists(st.integers(1, words), min_size=1, max_size=sentences), min_size=1, max_size=documents)


seeds = st.integers(0, 2**32 - 1)


def marginal_loss(
    model: EMHRNN,
    batch: Batch,
    states: WordStates,
    z: Bool[np.ndarray, " words"],
    blocks: Blocks,
) -> Float[Tensor, ""]:
    """-log p(y | zhat_-B, w), mean over blocks: autograd supplies the responsibilities."""
    likelihood = configuration_likelihood(model, batch, states, z, blocks)
    return -torch.logsumexp(log_prior(states.a, blocks) + likelihood, dim=1).sum() / len(blocks)
