"""From a model's flat arrays to explanations: boundaries z become phrases, and each document gets its part."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from emhrnn.corpus.batch import offsets_of
from emhrnn.errors import DataError
from emhrnn.explain.arrays import Attention, DocumentArrays, check_classes, check_length
from emhrnn.explain.explanation import Effects, EffectsBy, Explanation, Labels, PhraseEvidence
from emhrnn.text import Document, Located

MULTI_LABEL_THRESHOLD = 0.5


@dataclass(frozen=True, eq=False)
class BatchEffects:
    """Of all documents of a batch, on the log-odds of the class that each is taken for. `by` says how they were found
    (explanation.py)."""

    classes: Int64[np.ndarray, " documents"]
    words: Float64[np.ndarray, " words"]
    phrases: Float64[np.ndarray, " phrases"]
    sentences: Float64[np.ndarray, " sentences"]
    by: EffectsBy = "estimate"

    @property
    def levels(self) -> tuple[Float64[np.ndarray, "..."], ...]:
        """Of words, phrases and sentences."""
        return self.words, self.phrases, self.sentences


@dataclass(frozen=True, eq=False)
class BatchEvidence:
    """Of all documents of a batch, for every class; `PhraseEvidence` says how it is scaled."""

    phrases: Float64[np.ndarray, "phrases classes"]
    bias: Float64[np.ndarray, "documents classes"]  # with what the user and the product say, where the model reads them
    priors: Float64[np.ndarray, " documents"]  # effects of the bias on the predicted class


def explain_documents(
    documents: Sequence[Located] | Sequence[Document],
    *,
    probabilities: Float[np.ndarray, "documents classes"],
    classes: Sequence[str],
    z: Bool[np.ndarray, " words"],
    known: Bool[np.ndarray, " words"],
    attention: Attention | None = None,
    pi: Float[np.ndarray, " words"] | None = None,
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
    lengths = np.concatenate([np.diff(document.sentence_offsets) for document in documents])
    ends, document_offsets = offsets_of(lengths), offsets_of(np.array([document.n_sentences for document in documents]))
    check_length("z", z, int(ends[-1]), "word")
    if not z[ends[1:] - 1].all():
        raise DataError("z must be True at the last word of every sentence: phrases do not cross sentence ends")
    phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentence_offsets = np.searchsorted(phrase_offsets, ends).astype(np.int64)
    looked = None
    if attention is not None:
        looked = Attention(
            normalised(attention.alpha, phrase_offsets),
            normalised(attention.beta, sentence_offsets),
            normalised(attention.gamma, document_offsets),
            attention.direct,
        )
    batch = DocumentArrays(
        texts=[document.text for document in documents],
        starts=np.concatenate([document.starts for document in documents]),
        ends=np.concatenate([document.ends for document in documents]),
        phrase_offsets=phrase_offsets,
        sentence_offsets=sentence_offsets,
        document_offsets=document_offsets,
        known=known,
        pi=None if pi is None else pi.astype(np.float64),
        attention=looked,
        effects=() if effects is None else effects.levels,
    )
    names, shown = tuple(map(str, classes)), probabilities.astype(np.float64)
    check_classes(names, shown)
    predicted = [predict(row, names, multi_label) for row in probabilities]
    parts = (batch.word_offsets, sentence_offsets[document_offsets], document_offsets)
    bounds = zip(*(pairwise(offsets.tolist()) for offsets in parts), strict=True)
    explanations = []
    for d, (words, phrases, sentences) in enumerate(bounds):
        # Arrays are copied: who keeps an explanation does not keep the batch.
        w, p, s = slice(*words), slice(*phrases), slice(*sentences)
        phrases_of = sentence_offsets[s.start : s.stop + 1] - p.start
        explanation = Explanation(
            text=batch.texts[d],
            classes=names,
            probabilities=shown[d].copy(),
            predicted=predicted[d],
            label=None if labels is None else labels[d],
            model=model,
            starts=batch.starts[w].copy(),
            ends=batch.ends[w].copy(),
            phrase_offsets=phrase_offsets[p.start : p.stop + 1] - w.start,
            sentence_offsets=phrases_of,
            known=known[w].copy(),
            pi=None if batch.pi is None else batch.pi[w].copy(),
            attention=None
            if looked is None
            else Attention(
                looked.alpha[w].copy(),
                looked.beta[p].copy(),
                looked.gamma[s].copy(),
                None if looked.direct is None else looked.direct[w].copy(),
            ),
            effects=None
            if effects is None
            else Effects(
                names[effects.classes[d]],
                effects.words[w].copy(),
                effects.phrases[p].copy(),
                effects.sentences[s].copy(),
                None if evidence is None else float(evidence.priors[d]),
                effects.by,
            ),
            evidence=None
            if evidence is None
            else PhraseEvidence(names, evidence.phrases[p].copy(), evidence.bias[d].copy(), phrases_of),
            checked=True,
        )
        explanations.append(explanation)
    return explanations


def predict(probabilities: Float[np.ndarray, " classes"], classes: tuple[str, ...], multi_label: bool) -> Labels:
    """The label of a document; of a multi-label one, all labels with more than even odds."""
    if len(probabilities) != len(classes):
        raise DataError(f"{len(probabilities)} probabilities for {len(classes)} classes; give one per class")
    if multi_label:
        chosen = np.flatnonzero(probabilities > MULTI_LABEL_THRESHOLD)
        return tuple(classes[c] for c in chosen)
    return classes[int(np.argmax(probabilities))]


def normalised(
    weights: Float[np.ndarray, " n"], offsets: Int64[np.ndarray, " segments_plus_1"]
) -> Float64[np.ndarray, " n"]:
    """float32 softmaxes sum to 1 only to rounding, which grows with their length; shares are products of three, so the
    rounding is removed here. A segment that is wrong by more is left as it is, for `DocumentArrays` to refuse."""
    exact: Float64[np.ndarray, " n"] = weights.astype(np.float64)
    if len(exact) != offsets[-1]:
        return exact  # refused there, too
    sums, lengths = np.add.reduceat(exact, offsets[:-1]), np.diff(offsets)
    rounding = 1e-4 + lengths * np.finfo(np.float32).eps
    sums[~(np.abs(sums - 1) < rounding)] = 1
    exact /= np.repeat(sums, lengths)
    return exact
