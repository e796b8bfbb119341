"""Precision, recall and F1 of phrase ends against chunk ends, with the counts they come from. Ends of sentences are
left out: they are given to every method."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from emhrnn.corpus.batch import Batch
from emhrnn.em import SegmentPosterior
from emhrnn.errors import ConfigError
from emhrnn.explain.explainer import groups
from emhrnn.models.evidence import Evidence
from emhrnn.models.output import Output
from emhrnn.models.segmentation import at_words, every, punctuation, random
from emhrnn.paper.chunks.conll import Chunked
from emhrnn.training.run import Run

RANDOM_DRAWS = 20
Z = Bool[np.ndarray, " words"]


@dataclass(frozen=True)
class Agreement:
    """`predicted`, `gold` and `both` count ends that are not ends of sentences."""

    name: str
    predicted: float
    gold: int
    both: float

    @property
    def precision(self) -> float:
        return self.both / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.both / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


def as_batch(run: Run, sentences: Sequence[Sequence[str]]) -> Batch:
    """Each sentence is a document: phrases never look beyond one."""
    words = [word.lower() if run.text.lowercase else word for sentence in sentences for word in sentence]
    return Batch(
        words=run.vocabulary.encode(words).astype(np.int64),
        sentence_offsets=np.cumsum([0, *map(len, sentences)], dtype=np.int64),
        document_offsets=np.arange(len(sentences) + 1, dtype=np.int64),
        rows=np.arange(len(sentences), dtype=np.int64),
    )


@torch.inference_mode()
def learned(run: Run, batch: Batch) -> tuple[Z, Float[np.ndarray, " words"]]:
    """Phrase ends as the run's model finds them, and pi."""
    ends, chances = [], []
    for first, last in groups(batch.sentence_lengths.tolist()):
        if isinstance(run.model, Evidence):
            z, pi = _of_evidence(run.model, batch.part(first, last))
            ends.append(z)
            chances.append(pi)
            continue
        output: Output = run.model(batch.part(first, last))
        if output.z is None or output.pi is None:
            raise ConfigError(f"the model {run.config.model.name!r} finds no phrases; use em-hrnn or mhs-rnn-att")
        ends.append(output.z)
        chances.append(output.pi.numpy())
    return np.concatenate(ends), np.concatenate(chances)


def _of_evidence(model: Evidence, batch: Batch) -> tuple[Z, Float[np.ndarray, " words"]]:
    """The explained segmentation, and the probability of each end given the predicted class."""
    reading = model.read(batch)
    posterior = SegmentPosterior(model.potentials(batch, model.evidence(batch)), batch.sentence_offsets)
    of_sentence = reading.chosen[torch.from_numpy(batch.document_of_sentence)]
    return reading.z, posterior.of_classes(of_sentence).gamma[:, 0].numpy()


def agreements(run: Run, chunked: Chunked, *, seed: int = 0) -> list[Agreement]:
    """The model's phrase ends, and those that need no learning, as many of them as the model has where that can be."""
    batch = as_batch(run, chunked.sentences)
    free = ~batch.sentence_final
    z, pi = learned(run, batch)
    rate = float(z[free].mean())
    marks = punctuation(run.vocabulary.words)
    length = max(round(1 / rate), 1) if rate else batch.n_words
    generator = np.random.default_rng(seed)
    draws = [random(batch, rate, generator) for _ in range(RANDOM_DRAWS)]
    name, trained = run.config.model.name, run.config.em.rate
    wanted = max(trained * batch.n_words - batch.n_sentences, 0) / free.sum()  # the rate counts ends of sentences, too
    likeliest = pi > np.quantile(pi[free], 1 - wanted)  # on other text the model's own threshold gives another rate
    candidates: Mapping[str, Sequence[Z]] = {
        name: [z],
        f"{name}, the likeliest {trained:.0%} of words": [likeliest],
        "random, same rate": draws,
        f"every {length} words": [every(batch, length)],
        "punctuation": [at_words(batch, marks)],
        "every word": [np.ones(batch.n_words, dtype=bool)],
    }
    return [_agreement(name, found, chunked.ends, free) for name, found in candidates.items()]


def _agreement(name: str, found: Sequence[Z], gold: Z, free: Z) -> Agreement:
    """Counts are means over draws."""
    predicted = np.mean([(z & free).sum() for z in found])
    both = np.mean([(z & gold & free).sum() for z in found])
    return Agreement(name, float(predicted), int((gold & free).sum()), float(both))
