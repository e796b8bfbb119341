"""The loop over the steps, on documents of which only the lengths matter."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from emhrnn.corpus import Corpus
from emhrnn.corpus.batch import Batch
from emhrnn.models.model import DocumentModel
from emhrnn.training.config import TrainingConfig
from emhrnn.training.loop import LabelLoss, PlainObjective, order_of, steps
from emhrnn.training.optimizer import Optimizer
from emhrnn.training.schedule import Position

CONFIG = TrainingConfig(epochs=4, batch_words=150, decay="none", seed=1)


class Indifferent(PlainObjective):
    def loss(self, batch: Batch, epoch: int, step: int) -> tuple[Tensor, dict[str, float]]:
        return sum(p.sum() for p in self.model.parameters()) * 0, {}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    lengths = np.random.default_rng(0).integers(5, 120, 400)
    return Corpus.from_texts(["word " * length for length in lengths], ["a", "b"] * 200)


def rates(corpus: Corpus, position: Position) -> list[list[float]]:
    """Of each step from there on, by epoch."""
    model = DocumentModel()
    model.weight = nn.Parameter(torch.zeros(1))
    objective, optimizer = Indifferent(model, LabelLoss(), CONFIG.seed), Optimizer(model, CONFIG)
    told: list[list[float]] = [[] for _ in range(CONFIG.epochs)]
    for step in steps(objective, optimizer, corpus, CONFIG, position):
        told[step.epoch].append(step.learning_rate)
    return told


def test_a_resumed_run_has_the_rest_of_the_course_of_the_learning_rate(corpus: Corpus) -> None:
    counts = [len(order_of(corpus, CONFIG, epoch)) for epoch in range(4)]
    told = rates(corpus, Position())
    rise = told[0][:50]
    assert rise == sorted(rise)
    assert rise[0] > 0
    assert told[2] == sorted(told[2], reverse=True)
    resumed = rates(corpus, Position(epoch=2, batch=7, step=counts[0] + counts[1] + 7))
    assert resumed[2] == told[2][7:]
    assert resumed[3] == told[3]
