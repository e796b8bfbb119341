"""Explanations to compare: each gives every word, phrase and sentence a score, and says what that cost.

attention             descent: gamma; gamma beta; gamma beta alpha
weight x effect       effects.py
random                a number out of a hat
integrated gradients  of the word vectors and of what words say by themselves, from zero, by captum; phrases and
                      sentences sum their words
occlusion             the fall of the log-odds when one unit is really taken out: one pass for each unit
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64
from torch import Tensor

from emhrnn.errors import ConfigError
from emhrnn.explain.effects import BatchEffects, encode_with_effects, log_odds
from emhrnn.explain.removal import CHUNK_WORDS, LEVELS, thorough_effects, units_of
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.paper.faithfulness.perturbation import Subject

Scores = Mapping[str, Float64[np.ndarray, " units"]]  # by level
STEPS = 50  # of the path of integrated gradients


@dataclass(frozen=True, eq=False)
class Attribution:
    """Scores by level, and passes per document by level."""

    scores: Scores
    forward: Mapping[str, Float64[np.ndarray, " documents"]]
    backward: Mapping[str, Float64[np.ndarray, " documents"]]


def attention(subject: Subject) -> Attribution:
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
    model, run = _model(subject), subject.run
    with torch.no_grad():
        states = model.words(subject.batch)
    _, effects = encode_with_effects(
        model, subject.batch, states, subject.z, multi_label=run.multi_label, temperature=run.temperature
    )
    return _priced(subject, _by_level(effects), forward=1, backward=1)


def thorough(subject: Subject) -> Attribution:
    run = subject.run
    effects = thorough_effects(
        _model(subject), subject.batch, subject.z, multi_label=run.multi_label, temperature=run.temperature
    )
    return _priced(subject, _by_level(effects), forward=2, backward=2)


def _by_level(effects: BatchEffects) -> Scores:
    levels = zip(LEVELS, (effects.words, effects.phrases, effects.sentences), strict=True)
    return {level: values.numpy().astype(np.float64) for level, values in levels}


def random(subject: Subject, generator: np.random.Generator) -> Attribution:
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
