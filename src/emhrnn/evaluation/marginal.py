"""p(y | w) of the model as it is written: the mean over its phrases, not what the likeliest ones say (SPEC 1.7).

p(y | w) = sum over Z of p(Z | w) p(y | Z, w)        by the mean over some Z that are drawn by pi

The same draws tell how much label and phrases have to do with each other, in bits of a document:

I(y; Z | w) = H(y | w) - E_Z H(y | Z, w)        what the label tells about where phrases end, and the other way round
H(Z | w)    = sum over words of H(pi)           what there is to tell
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from emhrnn.corpus.batch import Batch
from emhrnn.em.imputation import sample_prior
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output

DRAWN = 8


class Marginal(nn.Module):
    """Predicts one label per document as `model` does, by the mean over `drawn` segmentations. What it learns about the
    documents on the way is kept in `label_bits` and `boundary_bits`, batch by batch."""

    def __init__(self, model: EMHRNN, drawn: int = DRAWN, *, temperature: float = 1.0) -> None:
        super().__init__()
        self.model, self.drawn, self.temperature = model, drawn, temperature
        self.generator = np.random.default_rng(0)
        self.label_bits: list[Tensor] = []
        self.boundary_bits: list[Tensor] = []

    def forward(self, batch: Batch) -> Output:
        """Logits are logarithms of the mean probabilities; the rest is that of the last segmentation."""
        states = self.model.words(batch)
        outputs = [
            self.model.encode(batch, states, sample_prior(batch, states.a, self.generator)) for _ in range(self.drawn)
        ]
        p = torch.softmax(torch.stack([output.logits for output in outputs]).double() / self.temperature, dim=2)
        self.label_bits.append(label_bits(p))
        self.boundary_bits.append(boundary_bits(batch, states.a))
        return replace(outputs[-1], logits=p.mean(0).log().to(states.a.dtype))


def label_bits(p: Float[Tensor, "drawn documents classes"]) -> Float[Tensor, " documents"]:
    """I(y; Z | w) of each document, given p(y | Z, w) of some Z. As a variance does, it comes out (drawn - 1) / drawn
    too small where the Z differ little, and is put right for that."""
    between = _bits(p.mean(0)).sum(1) - _bits(p).sum(2).mean(0)
    return between * len(p) / (len(p) - 1)


def boundary_bits(batch: Batch, a: Float[Tensor, " words"]) -> Float[Tensor, " documents"]:
    """H(Z | w) of each document, given the logit of pi. The ends of sentences are known."""
    pi = torch.sigmoid(a.double())
    bits = _bits(pi) + _bits(1 - pi)
    bits[torch.from_numpy(batch.sentence_final)] = 0
    return torch.segment_reduce(bits, "sum", lengths=torch.from_numpy(batch.document_lengths))


def _bits(p: Tensor) -> Tensor:
    bits: Tensor = torch.special.entr(p) / np.log(2)
    return bits
