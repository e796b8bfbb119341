"""Is an explanation true of the model? Take out what it calls important, and see whether the prediction falls.

    comprehensiveness   p - p without the top k % of the words (phrases, sentences)       high: they were needed
    sufficiency         p - p of the top k % alone                                        low: they were enough

p is the probability of the class that the model predicts for the whole document; both are means over k = 1, 5, 10, 20
and 50 (the area over the perturbation curve of DeYoung et al. 2020). At least one unit is always taken out. Phrases
that stay keep their boundaries (removal.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.explain.effects import log_odds
from emhrnn.explain.explainer import batch_of
from emhrnn.explain.removal import logits_without, units_of
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.text import Located
from emhrnn.training.run import Run

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True, eq=False)
class Subject:
    """Documents as the model reads them: phrases, predicted classes, and what it gives those."""

    run: Run
    batch: Batch
    z: Bool[np.ndarray, " words"]
    chosen: Int64[np.ndarray, " documents"]
    p: Float64[np.ndarray, " documents"]

    @classmethod
    @torch.inference_mode()
    def of(cls, run: Run, documents: Sequence[Located]) -> "Subject":
        model = run.model
        if not isinstance(model, EMHRNN):
            raise ConfigError(f"this is a run of {run.told_model}; faithfulness needs em-hrnn with one level, give one")
        batch = batch_of(run, documents)
        states = model.words(batch)
        z = model.segment(batch, states)
        logits = model.encode(batch, states, z).logits
        chosen = logits.argmax(dim=1)
        p = run.probabilities(logits).gather(1, chosen.unsqueeze(1)).squeeze(1)
        return cls(run, batch, z, chosen.numpy(), p.numpy().astype(np.float64))

    def part(self, d: int) -> "Subject":
        """One document."""
        words = slice(self.batch.word_offsets[d], self.batch.word_offsets[d + 1])
        return Subject(self.run, self.batch.part(d, d + 1), self.z[words], self.chosen[d : d + 1], self.p[d : d + 1])

    @torch.inference_mode()
    def copies_without(
        self, keep: Bool[np.ndarray, "copies words"], *, odds: bool = False
    ) -> Float64[np.ndarray, "copies documents"]:
        """The probability, or the log-odds, of each document's class in copies that keep only some of their words."""
        copies, documents = len(keep), self.batch.n_documents
        logits = logits_without(self.run, self.batch, self.z, keep)
        chosen = torch.from_numpy(np.tile(self.chosen, copies))
        if odds:
            values = log_odds(logits, chosen, multi_label=self.run.multi_label, temperature=self.run.temperature)
        else:
            values = self.run.probabilities(logits).gather(1, chosen.unsqueeze(1)).squeeze(1)
        return values.numpy().reshape(copies, documents).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """Falls of the probability, one row per document and one column per share."""

    comprehensiveness: Float64[np.ndarray, "documents shares"]
    sufficiency: Float64[np.ndarray, "documents shares"]


def measure(
    subject: Subject, level: str, scores: Float[np.ndarray, " units"], shares: Sequence[float] = SHARES
) -> Faithfulness:
    """Of an explanation that gives each unit a score: the more, the more it speaks for the predicted class."""
    units = units_of(subject.batch, subject.z, level)
    top = np.stack([units.top(scores, share)[units.of_word] for share in shares])  # (shares, words)
    removed, alone = subject.copies_without(~top), subject.copies_without(top)
    return Faithfulness((subject.p - removed).T, (subject.p - alone).T)
