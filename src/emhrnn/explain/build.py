"""From a model's flat arrays to explanations: boundaries z become phrases, attention weights become the tree."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from emhrnn.corpus.batch import offsets_of
from emhrnn.errors import DataError
from emhrnn.explain.effects import BatchEffects, BatchEvidence
from emhrnn.explain.explanation import (
    DocumentArrays,
    Effects,
    EffectsBy,
    Explanation,
    Labels,
    PhraseEvidence,
    check_classes,
)
from emhrnn.text import Document, Located

MULTI_LABEL_THRESHOLD = 0.5


def explain_documents(
    documents: Sequence[Located] | Sequence[Document],
    *,
    probabilities: Float[np.ndarray, "documents classes"],
    classes: Sequence[str],
    z: Bool[np.ndarray, " words"],
    alpha: Float[np.ndarray, " words"],
    beta: Float[np.ndarray, " phrases"],
    gamma: Float[np.ndarray, " sentences"],
    known: Bool[np.ndarray, " words"],
    pi: Float[np.ndarray, " words"] | None = None,
    direct: Float[np.ndarray, " words"] | None = None,
    effects: BatchEffects | None = None,
    evidence: BatchEvidence | None = None,
    model: str = "EM-HRNN",
    labels: Sequence[Labels | None] | None = None,
    multi_label: bool = False,
) -> list[Explanation]:
    """Explain a batch: the documents' arrays one after the other, as a model returns them. `z` is True at the last word
    of each phrase and so at the last word of each sentence.

    Raises:
        DataError: the arrays do not fit the documents or each other, or weights do not sum to 1.
    """
    if not all(map(len, documents)):
        raise DataError("a document without words has no explanation; give a text with at least one word")
    ends, document_offsets = _sentence_ends(documents)
    if len(z) != ends[-1]:
        raise DataError(f"z has {len(z)} values for {ends[-1]} words; give one value per word, in the documents' order")
    if not z[ends[1:] - 1].all():
        raise DataError("z must be True at the last word of every sentence: phrases do not cross sentence ends")
    phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentence_offsets = np.searchsorted(phrase_offsets, ends).astype(np.int64)
    expect("beta", beta, len(phrase_offsets) - 1, "phrase")
    expect("gamma", gamma, len(ends) - 1, "sentence")
    expect("alpha", alpha, len(z), "word")
    columns = DocumentArrays(
        texts=[document.text for document in documents],
        starts=np.concatenate([document.starts for document in documents]),
        ends=np.concatenate([document.ends for document in documents]),
        phrase_offsets=phrase_offsets,
        sentence_offsets=sentence_offsets,
        document_offsets=document_offsets,
        alpha=normalise(alpha, phrase_offsets),
        beta=normalise(beta, sentence_offsets),
        gamma=normalise(gamma, document_offsets),
        known=known,
        pi=None if pi is None else pi.astype(np.float64),
        direct=None if direct is None else direct.astype(np.float64),
        effects=() if effects is None else effects.columns(),
    )
    names, shown = tuple(map(str, classes)), probabilities.astype(np.float64)
    check_classes(names, shown)
    on = [None] * len(documents) if effects is None else [(names[c], effects.by) for c in effects.classes.tolist()]
    return [
        _document(
            columns, d, on[d], evidence, classes=names, probabilities=shown[d].copy(), model=model,
            predicted=predict(probabilities[d], names, multi_label), label=None if labels is None else labels[d],
        )
        for d in range(len(documents))
    ]  # fmt: skip


def _sentence_ends(
    documents: Sequence[Located] | Sequence[Document],
) -> tuple[Int64[np.ndarray, " sentences_plus_1"], Int64[np.ndarray, " documents_plus_1"]]:
    """Of the whole batch: offsets of sentences in words, and of documents in sentences."""
    lengths = np.concatenate([np.diff(document.sentence_offsets) for document in documents])
    sentences = [document.n_sentences for document in documents]
    return offsets_of(lengths), offsets_of(np.array(sentences, dtype=np.int64))


def _document(
    columns: DocumentArrays,
    d: int,
    effects_on: tuple[str, EffectsBy] | None,
    evidence: BatchEvidence | None,
    *,
    classes: tuple[str, ...],
    **facts: Any,
) -> Explanation:
    """One of the batch. Its arrays are copies: who keeps it does not keep the batch."""
    first, last = columns.document_offsets[d : d + 2]
    sentences, phrases = slice(first, last), slice(*columns.sentence_offsets[[first, last]])
    words = slice(*columns.phrase_offsets[[phrases.start, phrases.stop]])

    def part(column: np.ndarray | None) -> np.ndarray | None:
        return None if column is None else column[words].copy()

    effects = None
    if effects_on is not None:
        of_words, of_phrases, of_sentences = columns.effects
        label, by = effects_on
        effects = Effects(
            label, of_words[words].copy(), of_phrases[phrases].copy(), of_sentences[sentences].copy(),
            None if evidence is None else float(evidence.priors[d]), by,
        )  # fmt: skip
    sentence_offsets = columns.sentence_offsets[first : last + 1] - phrases.start
    return Explanation(
        text=columns.texts[d],
        classes=classes,
        starts=columns.starts[words].copy(),
        ends=columns.ends[words].copy(),
        phrase_offsets=columns.phrase_offsets[phrases.start : phrases.stop + 1] - words.start,
        sentence_offsets=sentence_offsets,
        alpha=columns.alpha[words].copy(),
        beta=columns.beta[phrases].copy(),
        gamma=columns.gamma[sentences].copy(),
        known=columns.known[words].copy(),
        pi=part(columns.pi),
        direct=part(columns.direct),
        effects=effects,
        evidence=None
        if evidence is None
        else PhraseEvidence(classes, evidence.phrases[phrases].copy(), evidence.bias[d].copy(), sentence_offsets),
        checked=True,
        **facts,
    )


def predict(probabilities: Float[np.ndarray, " classes"], classes: tuple[str, ...], multi_label: bool) -> Labels:
    """The label of a document; of a multi-label one, all labels with more than even odds."""
    if len(probabilities) != len(classes):
        raise DataError(f"{len(probabilities)} probabilities for {len(classes)} classes; give one per class")
    if multi_label:
        chosen = np.flatnonzero(probabilities > MULTI_LABEL_THRESHOLD)
        return tuple(classes[c] for c in chosen)
    return classes[int(np.argmax(probabilities))]


def normalise(
    weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"]
) -> Float64[np.ndarray, " n"]:
    """float32 softmaxes sum to 1 only to rounding, which grows with their length; shares are products of three, so the
    rounding is removed here. A segment that is wrong by more is left as it is, for `DocumentArrays` to refuse."""
    exact: Float64[np.ndarray, " n"] = weights.astype(np.float64)
    sums, lengths = np.add.reduceat(exact, offsets[:-1]), np.diff(offsets)
    rounding = 1e-4 + lengths * np.finfo(np.float32).eps
    sums[~(np.abs(sums - 1) < rounding)] = 1
    exact /= np.repeat(sums, lengths)
    return exact


def expect(name: str, values: Float[np.ndarray, " n"], count: int, unit: str) -> None:
    """Raise a DataError unless there is one value for each unit."""
    if len(values) != count:
        raise DataError(f"{name} has {len(values)} values but the batch has {count} {unit}s; give one per {unit}")
