"""Explanations to compare: each gives every word, phrase and sentence a score, and says what that cost.

attention             descent: gamma; gamma beta; gamma beta alpha
weight x effect       effects.py
random                a number out of a hat
integrated gradients  of the word vectors and of what words say by themselves, from zero, by captum; phrases and
                      sentences sum their words
occlusion             the fall of the log-odds when one unit is really taken out: one pass for each unit

They are compared by removing what an explanation calls important, and looking whether the prediction falls:

comprehensiveness   p - p without the top k % of the words (phrases, sentences)       high: they were needed
sufficiency         p - p of the top k % alone                                        low: they were enough

p is the probability of the class that the model predicts for the whole document; both are means over k = 1, 5, 10, 20
and 50 (the area over the perturbation curve of DeYoung et al. 2020). At least one unit is always removed. Phrases that
stay keep their boundaries (explain/removal.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.errors import ConfigError
from emhrnn.explain.build import BatchEffects
from emhrnn.explain.effects import encode_with_effects, log_odds
from emhrnn.explain.explainer import batch_of
from emhrnn.explain.removal import CHUNK_WORDS, LEVELS, logits_without, thorough_effects, units_of
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
            raise ConfigError(f"this is a run of {run.config.model.name}; faithfulness needs em-hrnn, give one")
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


Scores = Mapping[str, Float64[np.ndarray, " units"]]  # by level
STEPS = 50  # of the path of integrated gradients


@dataclass(frozen=True, eq=False)
class Attribution:
    """Scores by level, and passes per document by level."""

    scores: Scores
    forward: Mapping[str, Float64[np.ndarray, " documents"]]
    backward: Mapping[str, Float64[np.ndarray, " documents"]]


def attention(subject: Subject) -> Attribution:
    """Products of attention weights."""
    model, batch = _model(subject), subject.batch
    with torch.inference_mode():
        output = model.encode(batch, model.words(batch), subject.z)
    assert output.alpha is not None and output.beta is not None and output.gamma is not None  # noqa: PT018
    alpha, beta, gamma = (weights.numpy().astype(np.float64) for weights in (output.alpha, output.beta, output.gamma))
    ends = np.flatnonzero(subject.z)
    phrases = gamma[batch.sentence_of_word[ends]] * beta
    words = phrases[np.cumsum(subject.z) - subject.z] * alpha
    return _priced(subject, {"word": words, "phrase": phrases, "sentence": gamma}, forward=1)


def effect(subject: Subject) -> Attribution:
    """Weight x effect."""
    model, run = _model(subject), subject.run
    with torch.no_grad():
        states = model.words(subject.batch)
    _, effects = encode_with_effects(
        model, subject.batch, states, subject.z, multi_label=run.multi_label, temperature=run.temperature
    )
    return _priced(subject, _by_level(effects), forward=1, backward=1)


def thorough(subject: Subject) -> Attribution:
    """Weight x effect with a second pass through the word layer."""
    run = subject.run
    effects = thorough_effects(
        _model(subject), subject.batch, subject.z, multi_label=run.multi_label, temperature=run.temperature
    )
    return _priced(subject, _by_level(effects), forward=2, backward=2)


def _by_level(effects: BatchEffects) -> Scores:
    return dict(zip(LEVELS, effects.levels, strict=True))


def random(subject: Subject, generator: np.random.Generator) -> Attribution:
    """Uniform numbers."""
    scores = {level: generator.random(int(units_of(subject.batch, subject.z, level).offsets[-1])) for level in LEVELS}
    return _priced(subject, scores)


def occlusion(subject: Subject, level: str) -> Attribution:
    """Minus the log-odds of the document without the unit: the same order as their fall."""
    counts = units_of(subject.batch, subject.z, level).counts.astype(np.float64)
    parts = [_left_out(subject.part(d), level) for d in range(subject.batch.n_documents)]
    return Attribution({level: np.concatenate(parts)}, {level: counts}, {level: np.zeros_like(counts)})


def _left_out(one: Subject, level: str) -> Float64[np.ndarray, " units"]:
    units = units_of(one.batch, one.z, level)
    odds: np.ndarray = -one.copies_without(units.of_word != np.arange(units.offsets[-1])[:, None], odds=True)[:, 0]
    return odds


def integrated_gradients(subject: Subject, steps: int = STEPS) -> Attribution:
    """Integrated gradients by captum, in `steps` steps from zero."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError:
        raise ConfigError("integrated gradients need captum; install emhrnn[analysis]") from None
    words = []
    for d in range(subject.batch.n_documents):
        one = _FromVectors(subject.part(d))
        method = IntegratedGradients(one)
        given = method.attribute(one.inputs, n_steps=steps, internal_batch_size=one.at_once)
        words.append(sum(part.detach().sum(dim=2)[0].double().numpy() for part in given))  # (words,)
    of_words = np.concatenate(words)
    scores = {"word": of_words}
    for level in ("phrase", "sentence"):
        scores[level] = np.bincount(units_of(subject.batch, subject.z, level).of_word, weights=of_words)
    return _priced(subject, scores, forward=steps, backward=steps)


class _FromVectors:
    """The log-odds of one document as a function of its word vectors and of what its words say by themselves, with its
    phrases as they are."""

    def __init__(self, one: Subject) -> None:
        self.subject, self.model = one, _model(one)
        with torch.no_grad():
            vectors = self.model.embedding(torch.from_numpy(one.batch.words))  # (words, size)
            said = () if self.model.ngrams is None else (self.model.ngrams.of_words(one.batch),)  # (words, classes)
        self.inputs = tuple(part.unsqueeze(0) for part in (vectors, *said))
        self.at_once = max(CHUNK_WORDS // one.batch.n_words, 1)

    def __call__(
        self, x: Float[Tensor, "copies words size"], said: Float[Tensor, "copies words classes"] | None = None
    ) -> Float[Tensor, " copies"]:
        model, run, copies = self.model, self.subject.run, len(x)
        batch, z = self.subject.batch.repeated(copies), np.tile(self.subject.z, copies)
        h1 = model.read(model.project(x.flatten(0, 1)), batch.sentence_offsets)
        states = model.word_states(batch, h1, None if said is None else said.sum(dim=1))
        chosen = torch.from_numpy(np.tile(self.subject.chosen, copies))
        return log_odds(
            model.encode(batch, states, z).logits, chosen, multi_label=run.multi_label, temperature=run.temperature
        )


def _model(subject: Subject) -> EMHRNN:
    model = subject.run.model
    assert isinstance(model, EMHRNN)  # `Subject.of` has checked
    return model


def _priced(subject: Subject, scores: Scores, *, forward: int = 0, backward: int = 0) -> Attribution:
    """The same passes for all levels and documents."""
    n = subject.batch.n_documents
    return Attribution(
        scores,
        {level: np.full(n, float(forward)) for level in scores},
        {level: np.full(n, float(backward)) for level in scores},
    )
