"""p(y | w) of the model as it is written: the mean over its phrases, not what the likeliest ones say (SPEC 1.7).

p(y | w) = sum over Z of p(Z | w) p(y | Z, w)        by the mean over some Z that are drawn by pi
"""

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from emhrnn.corpus.batch import Batch
from emhrnn.em.imputation import sample_prior
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output

DRAWN = 8


class Marginal(nn.Module):
    """Predicts one label per document as `model` does, by the mean over `drawn` segmentations."""

    def __init__(self, model: EMHRNN, drawn: int = DRAWN, seed: int = 0) -> None:
        super().__init__()
        self.model, self.drawn = model, drawn
        self.generator = np.random.default_rng(seed)

    def forward(self, batch: Batch) -> Output:
        """Logits are logarithms of the mean probabilities; the rest is that of the last segmentation."""
        states = self.model.words(batch)
        outputs = [
            self.model.encode(batch, states, sample_prior(batch, states.a, self.generator)) for _ in range(self.drawn)
        ]
        p = torch.stack([torch.softmax(output.logits, dim=1) for output in outputs]).mean(0)
        return replace(outputs[-1], logits=p.log())
