"""From a model's flat arrays to explanations: boundaries z become phrases, attention weights become the tree."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from emhrnn.errors import DataError
from emhrnn.explain.effects import BatchEffects
from emhrnn.explain.explanation import Effects, Explanation, Labels
from emhrnn.text.document import Document

MULTI_LABEL_THRESHOLD = 0.5


def explain_document(
    document: Document,
    *,
    probabilities: Float[np.ndarray, " classes"],
    classes: Sequence[str],
    z: Bool[np.ndarray, " words"],
    alpha: Float[np.ndarray, " words"],
    beta: Float[np.ndarray, " phrases"],
    gamma: Float[np.ndarray, " sentences"],
    known: Bool[np.ndarray, " words"],
    pi: Float[np.ndarray, " words"] | None = None,
    direct: Float[np.ndarray, " words"] | None = None,
    effects: Effects | None = None,
    model: str = "EM-HRNN",
    label: Labels | None = None,
    multi_label: bool = False,
) -> Explanation:
    """Explain one document. `z` is True at the last word of each phrase and so at the last word of each sentence.

    Raises:
        DataError: the arrays do not fit the document or each other, or weights do not sum to 1.
    """
    words, ends = len(document.words), document.sentence_offsets[1:]
    if words == 0:
        raise DataError("a document without words has no explanation; give a text with at least one word")
    if len(z) != words:
        raise DataError(f"z has {len(z)} values for {words} words; give one value per word")
    if not z[ends - 1].all():
        raise DataError("z must be True at the last word of every sentence: phrases do not cross sentence ends")
    phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1]).astype(np.int64)
    sentence_offsets = np.searchsorted(phrase_offsets, document.sentence_offsets).astype(np.int64)
    expect("beta", beta, len(phrase_offsets) - 1, "phrase")
    expect("gamma", gamma, len(sentence_offsets) - 1, "sentence")
    expect("alpha", alpha, words, "word")
    names = tuple(str(name) for name in classes)
    return Explanation(
        text=document.text,
        classes=names,
        probabilities=probabilities.astype(np.float64),
        predicted=predict(probabilities, names, multi_label),
        label=label,
        model=model,
        starts=document.starts,
        ends=document.ends,
        phrase_offsets=phrase_offsets,
        sentence_offsets=sentence_offsets,
        alpha=normalise(alpha, phrase_offsets),
        beta=normalise(beta, sentence_offsets),
        gamma=normalise(gamma, np.array([0, len(gamma)], dtype=np.int64)),
        known=known,
        pi=None if pi is None else pi.astype(np.float64),
        direct=None if direct is None else direct.astype(np.float64),
        effects=effects,
    )


def explain_documents(
    documents: Sequence[Document],
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
    model: str = "EM-HRNN",
    labels: Sequence[Labels | None] | None = None,
    multi_label: bool = False,
) -> list[Explanation]:
    """Explain a batch: the documents' arrays one after the other, as a model returns them."""
    word_offsets = offsets_of(len(document.words) for document in documents)
    sentence_offsets = offsets_of(len(document.sentence_offsets) - 1 for document in documents)
    if len(z) != word_offsets[-1]:
        raise DataError(f"z has {len(z)} values for {word_offsets[-1]} words; give the batch in the documents' order")
    phrase_offsets = np.concatenate([[0], np.cumsum(z)])[word_offsets]
    explanations = []
    for d, document in enumerate(documents):
        words = slice(word_offsets[d], word_offsets[d + 1])
        phrases = slice(phrase_offsets[d], phrase_offsets[d + 1])
        sentences = slice(sentence_offsets[d], sentence_offsets[d + 1])
        explanation = explain_document(
            document,
            probabilities=probabilities[d],
            classes=classes,
            z=z[words],
            alpha=alpha[words],
            beta=beta[phrases],
            gamma=gamma[sentences],
            known=known[words],
            pi=None if pi is None else pi[words],
            direct=None if direct is None else direct[words],
            effects=None if effects is None else effects_of(effects, d, classes, words, phrases, sentences),
            model=model,
            label=None if labels is None else labels[d],
            multi_label=multi_label,
        )
        explanations.append(explanation)
    return explanations


def effects_of(
    effects: BatchEffects, d: int, classes: Sequence[str], words: slice, phrases: slice, sentences: slice
) -> Effects:
    """Those of document d."""
    columns = (effects.words[words], effects.phrases[phrases], effects.sentences[sentences])
    return Effects(str(classes[int(effects.classes[d])]), *(column.numpy().astype(np.float64) for column in columns))


def predict(probabilities: Float[np.ndarray, " classes"], classes: tuple[str, ...], multi_label: bool) -> Labels:
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
    rounding is removed here. A segment that is wrong by more is left as it is, for `Explanation` to refuse."""
    exact: Float64[np.ndarray, " n"] = weights.astype(np.float64)
    sums, lengths = np.add.reduceat(exact, offsets[:-1]), np.diff(offsets)
    rounding = 1e-4 + lengths * np.finfo(np.float32).eps
    sums[~(np.abs(sums - 1) < rounding)] = 1
    exact /= np.repeat(sums, lengths)
    return exact


def expect(name: str, values: Float[np.ndarray, " n"], count: int, unit: str) -> None:
    if len(values) != count:
        raise DataError(f"{name} has {len(values)} values but the document has {count} {unit}s; give one per {unit}")


def offsets_of(counts: Iterable[int]) -> Int64[np.ndarray, " n"]:
    return np.cumsum([0, *counts], dtype=np.int64)
