"""From a model's flat arrays to explanations: boundaries z become phrases, and each document gets its part, with
warnings where it is unlike the documents that the model was trained on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap

import numpy as np

from emhrnn.corpus.batch import Batch, offsets_within
from emhrnn.evaluation.decision import Decision
from emhrnn.explain.arrays import Attention, Effects, EffectsBy, PhraseEvidence
from emhrnn.explain.explanation import Explanation, Labels
from emhrnn.shapes import Bool, Float, Float64, Int64
from emhrnn.text import Located, LocatedTexts
from emhrnn.text.language import BEGINNING, language_of

UNKNOWN_WORD = 0
UNKNOWN_SHARE = 0.5  # of the words, punctuation aside: from here on there is a warning
FOREIGN_SHARE = 0.1  # of all words that are unknown: from here on the language is looked at
FAR = 3  # times as long as the longest training document, or a third of the shortest


@dataclass(frozen=True, eq=False)
class BatchEffects:
    """Of all documents of a batch, on the log-odds of the class that each is taken for. `by` says how they were found
    (explanation.py)."""

    classes: Int64[np.ndarray, " documents"]
    words: Float64[np.ndarray, " words"]
    phrases: Float64[np.ndarray, " phrases"]
    sentences: Float64[np.ndarray, " sentences"]
    by: EffectsBy = "estimate"
    priors: Float64[np.ndarray, " documents"] | None = None  # of the classes without any text, where effects add up
    errors: Float64[np.ndarray, " documents"] | None = None  # standard errors, where effects are sampled
    left_out: Sequence[Mapping[int, float]] | None = None  # of each document, as `Effects` has it

    @property
    def levels(self) -> tuple[Float64[np.ndarray, "..."], ...]:
        """Of words, phrases and sentences."""
        return self.words, self.phrases, self.sentences


@dataclass(frozen=True, eq=False)
class BatchEvidence:
    """Of all documents of a batch, for every class; `PhraseEvidence` says how it is scaled."""

    phrases: Float64[np.ndarray, "phrases classes"]
    bias: Float64[np.ndarray, "documents classes"]  # with what the user and the product say, where the model reads them


@dataclass(frozen=True, eq=False)
class Findings:
    """What a model says of a batch, and why, as far as it can say."""

    logits: Float[np.ndarray, "documents classes"]
    z: Bool[np.ndarray, " words"] | None  # the last word of each phrase; None for a model that cannot be explained
    attention: Attention | None = None
    pi: Float[np.ndarray, " words"] | None = None
    effects: BatchEffects | None = None
    evidence: BatchEvidence | None = None


def explain_documents(
    documents: LocatedTexts,
    batch: Batch,
    found: Findings,
    *,
    probabilities: Float[np.ndarray, "documents classes"],
    classes: Sequence[str],
    model: str = "EM-HRNN",
    labels: Sequence[Labels | None] | None = None,
    multi_label: bool = False,
    lengths: tuple[int, int] | None = None,
    language: str | None = None,
) -> list[Explanation]:
    """Explain a batch of documents by what a model says of it, one document after the other. `lengths`, the fewest and
    the most words of a training document, and their `language` are for warnings, where they are known. Arrays are views
    of the batch's: copies cost a tenth of a prediction. To keep few of many explanations, keep a `copy.deepcopy` of
    them.

    Raises:
        DataError: weights do not sum to 1.
    """
    z, pi, attention, effects, evidence = found.z, found.pi, found.attention, found.effects, found.evidence
    ends, document_offsets = batch.sentence_offsets, batch.document_offsets
    assert z is not None
    phrase_offsets = np.concatenate([[0], np.flatnonzero(z) + 1])
    sentence_offsets = np.searchsorted(phrase_offsets, ends).astype(np.int64)
    if attention is not None:
        attention = attention.normalised(phrase_offsets, sentence_offsets, document_offsets)
    names, shown = tuple(map(str, classes)), probabilities.astype(np.float64)
    known = batch.words != UNKNOWN_WORD
    warnings = warnings_of(documents, batch, known, lengths, language)
    predicted = [labels or () for labels in Decision(names, multi_label).labels(probabilities)]
    parts = (batch.word_offsets, sentence_offsets[document_offsets], document_offsets)
    bounds = zip(*(starmap(slice, pairwise(offsets.tolist())) for offsets in parts), strict=True)
    words_of = offsets_within(phrase_offsets, sentence_offsets[document_offsets])  # of each document, in phrases
    phrases_of = offsets_within(sentence_offsets, document_offsets)  # of each document, in sentences
    explanations = []
    for d, (text, (w, p, s)) in enumerate(zip(documents.texts, bounds, strict=True)):
        explanation = Explanation(
            text=text,
            classes=names,
            probabilities=shown[d],
            predicted=predicted[d],
            label=None if labels is None else labels[d],
            model=model,
            starts=documents.starts[w],
            ends=documents.ends[w],
            phrase_offsets=words_of[d],
            sentence_offsets=phrases_of[d],
            known=known[w],
            pi=None if pi is None else pi[w].astype(np.float64),
            attention=None if attention is None else attention.part(w, p, s),
            effects=None
            if effects is None
            else Effects(
                names[effects.classes[d]],
                effects.words[w],
                effects.phrases[p],
                effects.sentences[s],
                None if effects.priors is None else float(effects.priors[d]),
                effects.by,
                None if effects.errors is None else float(effects.errors[d]),
                None if effects.left_out is None else effects.left_out[d],
            ),
            evidence=None
            if evidence is None
            else PhraseEvidence(names, evidence.phrases[p], evidence.bias[d], phrases_of[d]),
            warnings=warnings[d],
        )
        explanations.append(explanation)
    return explanations


def warnings_of(
    documents: LocatedTexts,
    batch: Batch,
    known: Bool[np.ndarray, " words"],
    lengths: tuple[int, int] | None,
    language: str | None,
) -> list[tuple[str, ...]]:
    """Of each document. `lengths` are the fewest and the most words of a training document, None where not known; so is
    its `language`."""
    words = batch.document_lengths
    unknown = words - np.add.reduceat(known, batch.word_offsets[:-1], dtype=np.int64)
    fewest, most = lengths or (0, int(words.max()))
    # Vectors know words of many languages, and punctuation is nearly always known: a first look at all words, then at
    # each.
    suspects = np.flatnonzero((unknown > FOREIGN_SHARE * words) | (FAR * words < fewest) | (words > FAR * most))
    warnings: list[tuple[str, ...]] = [()] * len(documents)
    for d in suspects.tolist():
        of_document = known[batch.word_offsets[d] : batch.word_offsets[d + 1]]
        told = _unknown(documents[d], of_document), _foreign(documents.texts[d], language)
        warnings[d] = tuple(filter(None, (*told, _length(int(words[d]), fewest, most))))
    return warnings


def _unknown(document: Located, known: Bool[np.ndarray, " words"]) -> str:
    spans = zip(document.starts.tolist(), document.ends.tolist(), strict=True)
    spelled = np.array([any(map(str.isalnum, document.text[start:end])) for start, end in spans])
    share = 1 - known[spelled].mean() if spelled.any() else 0.0
    if share < UNKNOWN_SHARE:
        return ""
    return f"{share:.0%} of the words are unknown to this model; do not trust the label."


def _foreign(text: str, language: str | None) -> str:
    found = language_of(text[:BEGINNING])
    if found is None or found == (language or found):
        return ""
    languages = f"another language ({found}) than the training data ({language})"
    return f"This text seems to be in {languages}; do not trust the label."


def _length(words: int, fewest: int, most: int) -> str:
    told = f"This text has {words:,} word{'s' if words > 1 else ''}"
    if FAR * words < fewest:
        return f"{told}, the shortest training document {fewest:,}; the label is less reliable."
    if words > FAR * most:
        return f"{told}, the longest training document {most:,}; the label is less reliable."
    return ""
