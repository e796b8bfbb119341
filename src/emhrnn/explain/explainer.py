"""Explain raw texts with a trained run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import Names, check_names
from emhrnn.errors import ConfigError
from emhrnn.evaluation.predict import BATCH_WORDS
from emhrnn.explain.arrays import Attention
from emhrnn.explain.attention import levels_of
from emhrnn.explain.build import BatchEffects, BatchEvidence, explain_documents
from emhrnn.explain.effects import encode_with_effects, gradient_effects
from emhrnn.explain.evidence import AddsEvidence, exact_effects
from emhrnn.explain.explanation import Explanation, Labels
from emhrnn.explain.removal import LEVELS, removal_effects, thorough_effects
from emhrnn.models.em_hrnn import EMHRNN
from emhrnn.models.output import Output
from emhrnn.text import Document, Located, Text
from emhrnn.training.run import Run


def explain_texts(
    run: Run,
    texts: Sequence[Text],
    labels: Sequence[Labels | None] | None = None,
    *,
    threshold: float | None = None,
    users: Names = None,
    products: Names = None,
    thorough: bool = False,
    exact: bool = False,
) -> list[Explanation]:
    """One explanation per text, in order; `labels` are the true ones where they are known. Phrases end where pi is over
    the threshold: the model's own, or one from 0 (every word is a phrase) to 1 (every sentence is one). `users` and
    `products` are for models that read them; a name that is not given is read as the average one.

    Effects are estimated; `exact` really leaves out each phrase and each sentence (each word too, for a model without
    phrases), for the cost of about eight predictions. `thorough` refines the effects of words with a second pass, for
    the cost of about five. The effects of the evidence model are exact anyway.

    Raises:
        DataError: a text has no words.
        ConfigError: the run's model has no weights to show, or takes no threshold, or has no effects to refine.
    """
    return list(
        explanations_of(
            run, texts, labels, threshold=threshold, users=users, products=products, thorough=thorough, exact=exact
        )
    )


def explanations_of(
    run: Run,
    texts: Sequence[Text],
    labels: Sequence[Labels | None] | None = None,
    *,
    threshold: float | None = None,
    users: Names = None,
    products: Names = None,
    thorough: bool = False,
    exact: bool = False,
) -> Iterator[Explanation]:
    """`explain_texts`, of which only one batch is in memory at a time."""
    check_names("users", users, len(texts))
    check_names("products", products, len(texts))
    documents = read(run, texts)
    # exact effects of a long text take too long, and it must not keep others from theirs
    apart = ((d, d + 1) for d in range(len(documents)))
    for start, stop in apart if exact else groups([len(document) for document in documents]):
        told = None if labels is None else labels[start:stop]
        written, about = (None if names is None else names[start:stop] for names in (users, products))
        yield from explain_read(
            run, documents[start:stop], told, threshold, users=written, products=about, thorough=thorough, exact=exact
        )


def groups(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours that a batch has room for; a document that is larger than a batch is one alone."""
    start = words = 0
    for stop, length in enumerate(lengths):
        if stop > start and words + length > BATCH_WORDS:
            yield start, stop
            start, words = stop, 0
        words += length
    if start < len(lengths):
        yield start, len(lengths)


def explain_read(
    run: Run,
    documents: Sequence[Located],
    labels: Sequence[Labels | None] | None = None,
    threshold: float | None = None,
    *,
    users: Names = None,
    products: Names = None,
    thorough: bool = False,
    exact: bool = False,
) -> list[Explanation]:
    """Documents that are read already, as one batch."""
    batch = batch_of(run, documents, users=users, products=products)
    found = findings(run, batch, threshold=threshold, thorough=thorough, exact=exact)
    if found.z is None:
        raise ConfigError(
            f"the model {run.config.model.name!r} has no weights of words and sentences to explain with; use evidence "
            "or em-hrnn"
        )
    return explain_documents(
        documents,
        probabilities=run.probabilities(found.logits).numpy(),
        classes=run.classes,
        z=found.z,
        attention=found.attention,
        pi=None if found.pi is None else found.pi.numpy(),
        effects=found.effects,
        evidence=found.evidence,
        known=batch.words > 0,
        model=run.config.model.name,
        labels=labels,
        multi_label=run.multi_label,
    )


@dataclass(frozen=True, eq=False)
class Findings:
    """What a model says of a batch, and why, as far as it can say."""

    logits: Float[Tensor, "documents classes"]
    z: Bool[np.ndarray, " words"] | None  # None for a model that cannot be explained
    attention: Attention | None = None
    pi: Float[Tensor, " words"] | None = None
    effects: BatchEffects | None = None
    evidence: BatchEvidence | None = None


@torch.no_grad()
def findings(
    run: Run, batch: Batch, *, threshold: float | None = None, thorough: bool = False, exact: bool = False
) -> Findings:
    """The prediction of a batch and what explains it.

    Raises:
        ConfigError: the model has no threshold for the ends of phrases, or no second pass that refines its effects.
    """
    model = run.model
    odds: dict[str, Any] = {"multi_label": run.multi_label, "temperature": run.temperature}
    if isinstance(model, AddsEvidence):
        if threshold is not None or thorough:
            raise ConfigError(
                f"{run.config.model.name} gives exact evidence, which adds up to the prediction: there is nothing to "
                "refine and no threshold on the ends of phrases; leave thorough and threshold out"
            )
        reading = model.read(batch)
        exactly, evidence = exact_effects(reading, batch, **odds)
        return Findings(torch.from_numpy(reading.logits), reading.z, effects=exactly, evidence=evidence)
    if isinstance(model, EMHRNN):
        states = model.words(batch)
        if threshold is None or model.rule is not None:
            z = model.segment(batch, states)
        else:
            z = (torch.sigmoid(states.a) > threshold).numpy() | batch.sentence_final
        output, effects = encode_with_effects(model, batch, states, z, **odds)
        if thorough:
            effects = thorough_effects(model, batch, z, **odds)
        if exact:
            effects = _exact_phrases(run, batch, output, effects, shared=not thorough)
        levels = levels_of(output, batch)
        assert levels is not None
        return Findings(output.logits, z, levels.attention, output.pi, effects)
    if thorough:
        raise ConfigError(
            f"{run.config.model.name} has no second pass that refines its effects; thorough needs em-hrnn"
        )
    return _by_gradient(run, batch, exact)


def _exact_phrases(
    run: Run, batch: Batch, output: Output, effects: BatchEffects, *, shared: bool = True
) -> BatchEffects:
    """Effects of phrases and sentences by removal, unless that takes too long. With `shared`, words share what that
    adds to their phrase by their attention, so that they still sum to it."""
    assert output.z is not None
    assert output.alpha is not None
    found = removal_effects(run, batch, output.z, ("phrase", "sentence"), effects.classes)
    if found is None:
        return effects
    phrases, sentences = found
    phrase = np.cumsum(output.z) - output.z  # of each word
    words = effects.words + output.alpha.numpy() * (phrases - effects.phrases)[phrase] if shared else effects.words
    return BatchEffects(effects.classes, words, phrases, sentences, "removal")


def _by_gradient(run: Run, batch: Batch, exact: bool) -> Findings:
    """A model with attention of which nothing else is known: effects by one backward pass, or by removal."""
    estimated = gradient_effects(run.model, batch, multi_label=run.multi_label, temperature=run.temperature)
    if estimated is None:
        return Findings(run.model(batch).logits, None)
    output, effects = estimated
    levels = levels_of(output, batch)
    if levels is None:
        return Findings(output.logits, None)
    if exact and output.z is not None and not output.joint:
        effects = _exact_phrases(run, batch, output, effects)
    elif exact and (found := removal_effects(run, batch, levels.z, LEVELS, effects.classes)) is not None:
        effects = BatchEffects(effects.classes, found[0], found[1], found[2], "removal")
    return Findings(output.logits, levels.z, levels.attention, output.pi, effects)


def read(run: Run, texts: Sequence[Text]) -> list[Located]:
    """Texts as the run's training data was read, caps included, and where their words stand.

    Raises:
        DataError: a text has no words.
    """
    return run.encoder.locate(texts)


def batch_of(
    run: Run, documents: Sequence[Located] | Sequence[Document], *, users: Names = None, products: Names = None
) -> Batch:
    """Documents that are read already, for the run's model."""
    return run.encoder.batch(documents, users=users, products=products)
