"""Explain raw texts with a trained run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches

import numpy as np

from emhrnn.corpus.batch import Batch
from emhrnn.corpus.encode import Names
from emhrnn.errors import ConfigError
from emhrnn.evaluation.predict import BATCH_WORDS
from emhrnn.explain.build import BatchEffects, BatchEvidence, Findings, explain_documents
from emhrnn.explain.explanation import Explanation, Labels
from emhrnn.explain.removal import strongest_left_out
from emhrnn.layers.phrase_scores import segment_sums
from emhrnn.models.evidence_reader import AddsEvidence, Reading
from emhrnn.models.table import MODELS
from emhrnn.shapes import Float64, Int64
from emhrnn.text import LocatedTexts, Text
from emhrnn.training.run import Run

EFFECTS, OWEN = VALUES = ("effects", "owen")  # what an explanation shows


def explain_texts(
    run: Run,
    texts: Sequence[Text],
    labels: Sequence[Labels | None] | None = None,
    *,
    threshold: float | None = None,
    users: Names = None,
    products: Names = None,
    exact: bool = False,
    values: str = EFFECTS,
    target: str | None = None,
) -> list[Explanation]:
    """One explanation per text, in order; `labels` are the true ones where they are known. Phrases end where pi is over
    the threshold: the model's own, or one from 0 (every word is a phrase) to 1 (every sentence is one). `users` and
    `products` are for models that read them; a name that is not given is read as the average one.

    Effects are estimated; `exact` really leaves out each phrase and each sentence (each word too, for a model without
    phrases), for the cost of about eight predictions. The effects of the evidence model are exact anyway; `exact`
    leaves out its eight strongest phrases, one by one, to name the one without which the prediction falls most.

    `values="owen"` gives fair shares that add up to the prediction instead (owen.py). They are sampled, for the cost of
    sixteen predictions a word; those of the evidence model are its evidence. `target` is the class that effects are
    on, for the evidence model; by default the predicted one.

    Raises:
        DataError: a text has no words, or too many for Owen values.
        ConfigError: the run's model has no weights to show, or takes no threshold.
    """
    explanations = list[Explanation]()
    # exact effects of a long text take too long, and it must not keep others from theirs
    for part, documents, batch in read_batches(run, texts, users, products, apart=exact):
        told = None if labels is None else labels[part]
        explanations += explain_read(
            run, documents, batch, told, threshold=threshold, exact=exact, values=values, target=target
        )
    return explanations


def read_batches(
    run: Run, texts: Sequence[Text], users: Names = None, products: Names = None, *, apart: bool = False
) -> Iterator[tuple[slice, LocatedTexts, Batch]]:
    """Which texts, and what was read, in batches that a model has room for; each text is in its own if they are to be
    kept `apart`."""
    if not len(texts):
        return
    documents, batch = run.encoder.locate(texts, users=users, products=products)
    lengths = batch.document_lengths.tolist()
    for start, stop in ((d, d + 1) for d in range(len(lengths))) if apart else groups(lengths):
        part = slice(start, stop)
        if stop - start == len(documents):
            yield part, documents, batch
        else:
            yield part, documents[part], batch.part(start, stop)


def explained_alone(
    run: Run,
    text: str,
    *,
    user: str | None = None,
    product: str | None = None,
    threshold: float | None = None,
    exact: bool = False,
) -> tuple[Explanation, Batch]:
    """A text and its batch, for questions that continue from there."""
    ((_, documents, batch),) = read_batches(run, [text], [user], [product])
    (explanation,) = explain_read(run, documents, batch, threshold=threshold, exact=exact)
    return explanation, batch


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
    documents: LocatedTexts,
    batch: Batch,
    labels: Sequence[Labels | None] | None = None,
    *,
    threshold: float | None = None,
    exact: bool = False,
    values: str = EFFECTS,
    target: str | None = None,
) -> list[Explanation]:
    """Documents that are read already, as one batch."""
    found = findings(run, batch, threshold=threshold, exact=exact and values != OWEN, target=target)
    if values == OWEN and found.z is not None and found.effects is not None and found.effects.by != "evidence":
        from emhrnn.explain.owen import owen_effects

        found = replace(found, effects=owen_effects(run, batch, found.z, found.effects.classes))
    if found.z is None:
        raise ConfigError(
            f"the model {run.config.model.name!r} has no weights of words and sentences to explain with; use evidence "
            "or em-hrnn"
        )
    return explain_documents(
        documents,
        batch,
        found,
        probabilities=run.probabilities(found.logits),
        classes=run.classes,
        model=run.config.model.name,
        labels=labels,
        multi_label=run.multi_label,
        lengths=run.lengths,
        language=run.text.language,
    )


def findings(
    run: Run, batch: Batch, *, threshold: float | None = None, exact: bool = False, target: str | None = None
) -> Findings:
    """The prediction of a batch and what explains it, or what supports and opposes the class `target`.

    Raises:
        ConfigError: the model has no threshold for the ends of phrases, or no such class.
    """
    if target is not None:
        check_label(run, target)
    model = run.model
    if isinstance(model, AddsEvidence):
        if threshold is not None:
            raise ConfigError(
                f"{run.config.model.name} sums over all segmentations and has no threshold on the ends of phrases; "
                "leave threshold out"
            )
        reading = model.read(batch)
        if target is not None:
            reading = replace(reading, chosen=np.full_like(reading.chosen, run.classes.index(target)))
        exactly, evidence = exact_effects(reading, batch, multi_label=run.multi_label, temperature=run.temperature)
        if exact:
            exactly = replace(exactly, left_out=strongest_left_out(run, batch, reading.z, exactly))
        return Findings(reading.logits, reading.z, effects=exactly, evidence=evidence)
    of_network = MODELS[run.config.model.name].findings
    if target is not None:
        raise ConfigError(
            f"{run.config.model.name} explains the label that it predicts; `emhrnn explain --why-not` compares it with "
            "another, and evidence explains every label"
        )
    if of_network is None:
        return Findings(model.infer(batch).logits, None)
    found: Findings = of_network(run, batch, threshold=threshold, exact=exact)
    return found


def check_label(run: Run, label: str) -> None:
    """Raise a ConfigError for what is not a label of the run."""
    if label not in run.classes:
        near = get_close_matches(label, run.classes, n=1)
        meant = f"did you mean {near[0]!r}?" if near else f"give one of {', '.join(run.classes[:8])}"
        raise ConfigError(f"{label!r} is not a label of this run; {meant}")


def exact_effects(
    reading: Reading, batch: Batch, *, multi_label: bool, temperature: float
) -> tuple[BatchEffects, BatchEvidence]:
    """What a reading of the evidence model says, exactly: signed effects on the predicted class, and the evidence for
    every class. There is nothing to estimate."""
    chosen, against = reading.chosen, not multi_label and len(reading.bias) > 1
    ends = np.flatnonzero(reading.z)
    said, priors = reading.words, reading.priors.astype(np.float64) / temperature
    if temperature != 1.0:
        said = said / temperature
    if against:  # words are centred over the classes already: a softmax does not see the mean
        priors -= priors.mean(axis=1, keepdims=True)
    by_phrase = segment_sums(said, np.concatenate([[0], ends[:-1] + 1]))
    phrases_before = np.searchsorted(ends, batch.sentence_offsets)  # each sentence
    of_document = np.diff(phrases_before[batch.document_offsets])
    phrases = _support(by_phrase, np.repeat(chosen, of_document), against)
    effects = BatchEffects(
        chosen,
        words=_support(said, np.repeat(chosen, batch.document_lengths), against),
        phrases=phrases,
        sentences=np.add.reduceat(phrases, phrases_before[:-1]),
        by="evidence",
        priors=_support(priors, chosen, against),
    )
    return effects, BatchEvidence(by_phrase, priors)


def _support(
    said: Float64[np.ndarray, "n classes"], chosen: Int64[np.ndarray, " n"], against: bool
) -> Float64[np.ndarray, " n"]:
    """For the chosen class; less the mean of the others, if it stands against them. Rows are centred: the others sum to
    minus its own."""
    own: np.ndarray = said.reshape(-1)[chosen + np.arange(0, said.size, said.shape[1])]
    return own * (said.shape[1] / (said.shape[1] - 1)) if against else own
