"""HM-RNN and MHS-RNN: they learn labels by gradients, and their own detectors say where phrases end."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.utils import clip_grad_norm_

from emhrnn.em.likelihood import batch_labels
from emhrnn.models.output import log_likelihood
from emhrnn.paper.models.hm_rnn import HMRNN
from emhrnn.paper.models.mhs_rnn import MHSRNN
from emhrnn.paper.simulation.generator import CLASSES, World, take

DETECTORS: dict[str, Callable[..., HMRNN | MHSRNN]] = {"hm-rnn": HMRNN, "mhs-rnn": MHSRNN}


@dataclass(frozen=True)
class DetectorSchedule:
    epochs: int = 8
    documents: int = 250  # of a batch
    learning_rate: float = 5e-3
    clip: float = 1.0


def learn_detector(
    world: World,
    method: str,
    seed: int,
    schedule: DetectorSchedule,
    watch: Callable[[int, HMRNN | MHSRNN], None] = lambda *_: None,
) -> HMRNN | MHSRNN:
    random = np.random.default_rng([seed, 3])
    model = DETECTORS[method](
        table=world.teacher.embedding.table, classes=CLASSES, generator=torch.Generator().manual_seed(seed)
    )
    n = world.train.n_documents
    steps = schedule.epochs * -(-n // schedule.documents)
    optimizer = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate)
    pace = torch.optim.lr_scheduler.OneCycleLR(optimizer, schedule.learning_rate, total_steps=steps)
    for epoch in range(schedule.epochs):
        model.set_epoch(epoch)
        order = random.permutation(n)
        for begin in range(0, n, schedule.documents):
            batch = take(world.train, order[begin : begin + schedule.documents])
            loss = -log_likelihood(model(batch).logits, batch_labels(batch)).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(model.parameters(), schedule.clip)
            optimizer.step()
            pace.step()
        watch(epoch, model)
    return model
